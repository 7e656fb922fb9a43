"""edits_per_prompt, cancelled_share, tokens_per_prompt: what a prompt comes to."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, UNDISTURBED, Metric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome

_CANCELLED = Outcome.CANCELLED


class EditsPerPrompt(Metric):
    """Edits over prompts; with it, the share of prompts that were cancelled, and the mean tokens of
    a prompt.

    They count all prompts of an agent, also those without a call, if one of them read or changed a
    file: an agent without that is no coding agent, and has none of these numbers. State:
    integers.

    >>> from otel_reliability.model.coding import CodingTotals
    >>> from otel_reliability.testing import row
    >>> metric = EditsPerPrompt()
    >>> metric.add(row(outcome=Outcome.CANCELLED, tokens=900))
    >>> metric.value().value
    >>> metric.add(row(coding=CodingTotals(1, edits=3, editing_prompts=1), tokens=100))
    >>> [one.value for one in (metric.value(), *metric.companion_values())]
    [1.5, 0.5, 500.0]
    """

    __slots__ = ("_cancelled", "_coding", "_edits", "_observed", "_prompts", "_sized", "_tokens")

    requires = UNDISTURBED

    spec = MetricSpec(
        name="edits_per_prompt",
        title="Edits a prompt",
        family="coding",
        unit="{call}",
        high=None,
        direction="neutral",
        description="How many calls of a prompt change files, failed ones included.",
        formula="edits / prompts whose calls are known",
        required_data="1 prompt that read or changed a file",
        source="this project",
        improve="Inspect the prompts with most edits: several edits of one place are corrections.",
        interval="comparison",
    )
    companions = (
        spec._replace(
            name="cancelled_share",
            title="Share of cancelled prompts",
            unit="{ratio}",
            high=1.0,
            direction="lower",
            description="The share of prompts that the user stopped.",
            formula="cancelled prompts / prompts",
            improve="Inspect the calls before the stop: what was it that the user did not want?",
            interval="share",
        ),
        spec._replace(
            name="tokens_per_prompt",
            title="Tokens a prompt",
            unit="{token}",
            direction="lower",
            description="How many input and output tokens a prompt takes, cached ones included.",
            formula="Σ tokens / prompts whose tokens are known",
            required_data="1 prompt that read or changed a file, and 1 with tokens",
            improve="Inspect the prompts that take most, and how their context grows.",
        ),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._coding = self._prompts = self._observed = self._edits = 0
        self._cancelled = self._sized = self._tokens = 0

    def count(self, row: Row, sign: int) -> None:
        self._prompts += sign
        if row.outcome is _CANCELLED:
            self._cancelled += sign
        if row.coding is not None:
            self._coding += sign
        if row.tool_calls is not None:
            self._observed += sign
            self._edits += sign * (0 if row.coding is None else row.coding.edits)
        if row.tokens is not None:
            self._sized += sign
            self._tokens += sign * row.tokens

    def value(self) -> Reading:
        return self._mean(self._edits, self._observed)

    def companion_values(self) -> tuple[Reading, ...]:
        return (
            self._mean(self._cancelled, self._prompts),
            self._mean(self._tokens, self._sized),
        )

    def _mean(self, total: int, prompts: int) -> Reading:
        return Reading(total / prompts, prompts) if self._coding and prompts else NO_DATA
