"""prompt_robustness (R_prompt): how much of its accuracy the agent keeps when it is told the same in other words, as a share."""

from __future__ import annotations

from otel_reliability.metrics.robustness.kept_accuracy import KeptAccuracy
from otel_reliability.model.reading import MetricSpec


class PromptRobustness(KeptAccuracy):
    """R_prompt over the window: min(accuracy of the prompt runs / baseline accuracy, 1)."""

    __slots__ = ()

    condition = "prompt"
    spec = MetricSpec(
        name="prompt_robustness",
        title="Prompt robustness (R_prompt)",
        family="robustness",
        unit="{ratio}",
        low=0.0,
        high=1.0,
        direction="higher",
        description="How much of its accuracy the agent keeps when it is told the same in other words.",
        formula="min(accuracy under the condition / baseline accuracy, 1)",
        evidence="a run marked reliability.condition=prompt and a successful baseline run, outcomes known",
        source="HAL reliability, evaluation methodology: R_prompt",
        improve="Look at the wordings that fail: move what they leave open into the system prompt.",
    )
