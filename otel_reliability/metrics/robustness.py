"""Robustness: how much of its accuracy does the agent keep under a perturbation?

R_fault, R_struct and R_prompt are one formula under three conditions; R_Rob is their mean.
"""

from __future__ import annotations

from typing import ClassVar

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, OUTCOME, Composite, Metric, noted
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row


class KeptAccuracy(Metric):
    """min(accuracy of the runs under `condition` / baseline accuracy, 1). State: four integers.

    Accuracies are over the runs of all tasks together; no value without runs of both sides, or
    where no baseline run succeeds. These are the only metrics that perturbed runs change. The runs
    of a reading are those of both sides, which its note counts.

    >>> from otel_reliability.testing import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = FaultRobustness()
    >>> for condition, outcome in (
    ...     ("baseline", "success"),
    ...     ("fault", "success"),
    ...     ("fault", "failure"),
    ... ):
    ...     metric.add(row(condition=condition, outcome=Outcome(outcome)))
    >>> metric.value()
    Reading(value=0.5, runs=3, parts=(), note='2 fault, 1 baseline')
    """

    __slots__ = ("_by_status", "_passed", "_runs")

    requires = OUTCOME

    of_outcomes = True

    condition: ClassVar[str]

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._runs = {self.condition: 0, BASELINE: 0}
        self._passed = {self.condition: 0, BASELINE: 0}

    def count(self, row: Row, sign: int) -> None:
        if row.condition in self._runs:
            self._by_status += sign * row.by_status
            self._runs[row.condition] += sign
            self._passed[row.condition] += sign * (row.success is True)

    def value(self) -> Reading:
        runs = self._runs[self.condition]
        baseline = self._runs[BASELINE]
        if not runs or not self._passed[BASELINE]:
            return NO_DATA
        kept = self._passed[self.condition] / runs / (self._passed[BASELINE] / baseline)
        reading = Reading(
            min(kept, 1.0), runs + baseline, note=f"{runs} {self.condition}, {baseline} baseline"
        )
        return noted(reading, self._by_status)


def _spec(condition: str, symbol: str, when: str, improve: str) -> MetricSpec:
    return MetricSpec(
        name=f"{condition}_robustness",
        title=f"{condition.capitalize()} robustness ({symbol})",
        family="robustness",
        direction="higher",
        description=f"How much of its accuracy the agent keeps when {when}.",
        formula="min(accuracy under the condition / baseline accuracy, 1)",
        required_data=(
            f"a run marked reliability.condition={condition} and a successful baseline run, "
            "outcomes known"
        ),
        source=f"HAL reliability, evaluation methodology: {symbol}",
        improve=improve,
        interval="comparison",
    )


class FaultRobustness(KeptAccuracy):
    """R_fault: accuracy kept when tools and services fail."""

    __slots__ = ()

    condition = "fault"
    spec = _spec(
        condition,
        "R_fault",
        "tools and services fail",
        (
            "Give failed calls a bounded retry and a way round, and let the agent say when a "
            "tool is down."
        ),
    )


class StructureRobustness(KeptAccuracy):
    """R_struct: accuracy kept when the form of the input changes."""

    __slots__ = ()

    condition = "structure"
    spec = _spec(
        condition,
        "R_struct",
        "the form of its input changes",
        "Parse inputs by schema, not by position, and test with renamed fields and other orders.",
    )


class PromptRobustness(KeptAccuracy):
    """R_prompt: accuracy kept when the prompt is worded differently."""

    __slots__ = ()

    condition = "prompt"
    spec = _spec(
        condition,
        "R_prompt",
        "the prompt is worded differently",
        "Inspect the wordings that fail: move what they leave open into the system prompt.",
    )


class Robustness(Composite):
    """R_Rob: the mean of R_fault, R_struct and R_prompt, over those that exist. The reading names
    these.

    >>> Robustness().derive(
    ...     {"fault_robustness": Reading(0.5, 8), "prompt_robustness": Reading(1.0, 6)}
    ... )
    Reading(value=0.75, runs=8, parts=('fault_robustness', 'prompt_robustness'), note='')
    """

    spec = MetricSpec(
        name="robustness",
        title="Robustness (R_Rob)",
        family="robustness",
        direction="higher",
        description="How much of its accuracy the agent keeps when it is disturbed.",
        formula="mean of R_fault, R_struct and R_prompt over those that exist",
        required_data="any of its parts",
        source="HAL reliability, evaluation methodology: R_Rob",
        improve="Inspect its lowest part first.",
        interval="comparison",
    )
    needs = ("fault_robustness", "structure_robustness", "prompt_robustness")


ROWS = (FaultRobustness, StructureRobustness, PromptRobustness, Robustness)
