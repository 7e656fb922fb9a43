"""cache_hit_share: how much of what the agent sends does the provider have in its cache?"""

from __future__ import annotations

from otel_reliability.metrics._support.ratio import Part, Ratio
from otel_reliability.metrics.base import CACHED, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class CacheHitShare(Ratio):
    """Input tokens that were read from the provider's cache over all input tokens, of the model
    calls that report both.

    A change of the system prompt, of the tools or of the order of the context empties the cache.

    >>> from otel_reliability.testing import row
    >>> metric = CacheHitShare()
    >>> metric.add(row(cached_tokens=9_000, input_tokens=10_000))
    >>> metric.value().value
    0.9
    """

    __slots__ = ()

    requires = UNDISTURBED | CACHED

    spec = MetricSpec(
        name="cache_hit_share",
        title="Share of cached input",
        family="stability",
        direction="higher",
        description="The share of input tokens that were read from the provider's cache.",
        formula="Σ cached input tokens / Σ input tokens",
        required_data="1 model call that reports its cached input tokens",
        source="this project",
        improve="Compare the versions and instructions before and after it fell.",
        interval="comparison",
    )

    def of_run(self, row: Row) -> Part | None:
        return Part(row.cached_tokens, row.input_tokens)
