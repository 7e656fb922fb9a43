"""cache_hit_share: how much of what the agent sends does the provider have in its cache?"""

from __future__ import annotations

from otel_reliability.metrics._support.ratio import Part, Ratio
from otel_reliability.metrics.base import CODING, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class CacheHitShare(Ratio):
    """Input tokens that were read from the provider's cache over all input tokens, of the model
    calls that report both.

    Of the prompts that read or changed files. A change of the system prompt, of the tools or of
    the order of the context empties the cache.

    >>> from otel_reliability.model.coding import CodingTotals
    >>> from otel_reliability.testing import row
    >>> metric = CacheHitShare()
    >>> metric.add(row(coding=CodingTotals(1, input_tokens=10_000, cached_tokens=9_000)))
    >>> metric.value().value
    0.9
    """

    __slots__ = ()

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

    def of_run(self, row: Row) -> Part | None:
        coding = row.coding
        return None if coding is None else Part(coding.cached_tokens, coding.input_tokens)
