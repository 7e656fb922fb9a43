"""prompt_robustness (R_prompt): how much of its accuracy the agent keeps when it is told the same in other words, as a share."""

from __future__ import annotations

from otel_reliability.metrics.robustness.kept_accuracy import KeptAccuracy
from otel_reliability.model.reading import MetricSpec


class PromptRobustness(KeptAccuracy):
    """R_prompt over the window: min(accuracy of the prompt runs / baseline accuracy, 1).

    Accuracies are over the runs of all tasks together; no value without runs of both sides, or where no baseline run
    succeeds. State: four integers.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = PromptRobustness()
    >>> for condition, outcome in (("baseline", "success"), ("prompt", "success"), ("prompt", "failure")):
    ...     metric.add(row(condition=condition, outcome=Outcome(outcome)))
    >>> metric.read()
    Reading(value=0.5, runs=3, parts=(), note='2 prompt, 1 baseline')

    References: HAL Reliability, *Methodology*, "Prompt Robustness".
    """

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
