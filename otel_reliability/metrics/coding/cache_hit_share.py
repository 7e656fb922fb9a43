"""cache_hit_share: how much of what the agent sends does the provider have in its cache?"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import CODING, DEFAULTS, UNDISTURBED, Metric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class CacheHitShare(Metric):
    """Input tokens that were read from the provider's cache over all input tokens, of the model
    calls that report both.

    Of the prompts that read or changed files. A change of the system prompt, of the tools or of
    the order of the context empties the cache. State: three integers.

    >>> from otel_reliability.model.coding import CodingTotals
    >>> from otel_reliability.testing import row
    >>> metric = CacheHitShare()
    >>> metric.add(row(coding=CodingTotals(1, input_tokens=10_000, cached_tokens=9_000)))
    >>> metric.value().value
    0.9
    """

    __slots__ = ("_cached", "_input", "_prompts")

    requires = UNDISTURBED | CODING

    spec = MetricSpec(
        name="cache_hit_share",
        title="Share of cached input",
        family="coding",
        direction="higher",
        description="The share of input tokens that were read from the provider's cache.",
        formula="Σ cached input tokens / Σ input tokens",
        required_data="1 prompt that read or changed a file, with cached tokens",
        source="this project",
        improve="Compare the versions and instructions before and after it fell.",
        interval="comparison",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._cached = self._input = self._prompts = 0

    def count(self, row: Row, sign: int) -> None:
        if row.coding is not None and row.coding.input_tokens:
            self._cached += sign * row.coding.cached_tokens
            self._input += sign * row.coding.input_tokens
            self._prompts += sign

    def value(self) -> Reading:
        return Reading(self._cached / self._input, self._prompts) if self._input else NO_DATA
