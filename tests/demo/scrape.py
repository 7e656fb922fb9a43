"""The samples of Prometheus text, and the series of instruments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import GAUGES
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.prometheus import family_of, labels_of

_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels: TypeAlias = frozenset[tuple[str, str]]
Samples: TypeAlias = dict[tuple[str, Labels], float]
"""Values by the name of the series and its labels."""


def samples(text: str) -> Iterator[tuple[tuple[str, Labels], float]]:
    """The samples of Prometheus text.

    >>> dict(samples('up{job="shop"} 1'))
    {('up', frozenset({('job', 'shop')})): 1.0}
    """
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name, _, labels = series.partition("{")
            yield (name, frozenset(_LABEL.findall(labels))), float(value)


def series_of(spec: Instrument, attributes: Mapping[str, str | bool]) -> tuple[str, Labels]:
    """Under which name and labels an instrument's value with these attributes stands.

    >>> name, labels = series_of(names.RETRIES, {"gen_ai.tool.name": "search"})
    >>> name, sorted(labels)
    ('agent_reliability_retries_total', [('gen_ai_tool_name', 'search')])
    """
    name = family_of(spec) + ("_total" if spec.kind == "counter" else "")
    return name, frozenset(_LABEL.findall(labels_of(attributes.items())))


SPECS: Final[Mapping[str, Instrument]] = {**GAUGES, **{spec.name: spec for spec in names.COUNTERS}}
"""The instruments whose values are one number a series, by name."""
