"""Prometheus text and OpenMetrics (with exemplars), written line by line.

The service has up to 10,000 agents, which are 300,000 lines a scrape: to write a line costs a
hundredth of what the SDK's exporter takes for it. Tests compare the text with the OTLP push, and
read it with the parsers of `prometheus_client`.

Source: OpenTelemetry specification, "Prometheus and OpenMetrics compatibility"; OpenMetrics 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate, islice
from typing import Final

from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import (
    GAUGES,
    OWN,
    SPECS,
    Exemplar,
    Exposition,
    HistogramSeries,
    Labels,
    Series,
)
from otel_reliability.telemetry.names import Instrument, InstrumentKind

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_UNITS: Final = {"s": "seconds", "By": "bytes"}
_TYPES: Final[Mapping[InstrumentKind, str]] = {
    "gauge": "gauge",
    "counter": "counter",
    "up_down_counter": "gauge",
    "histogram": "histogram",
}
_SUFFIXES: Final = ("", "_total", "_bucket", "_sum", "_count")
"""Ends of the names of samples, after the name of their family."""
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")
_SEVERAL: Final = re.compile(r"_+")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def family_of(spec: Instrument) -> str:
    """Return an instrument's name in Prometheus, without the suffix of counters, as every
    translator of OTLP writes it.

    >>> (
    ...     family_of(GAUGES["agent.reliability.last_run.timestamp"]),
    ...     family_of(SPECS["agent.reliability.run.score"]),
    ... )
    ('agent_reliability_last_run_timestamp_seconds', 'agent_reliability_run_score')
    """
    name = _SEVERAL.sub("_", _UNSAFE.sub("_", spec.name))
    unit = _UNITS.get(spec.unit, "")
    return f"{name}_{unit}" if unit and unit not in name.split("_") else name


def labels_of(attributes: Iterable[tuple[str, str | bool]]) -> str:
    r"""Return attributes as labels, without braces. The values of two attributes that become one
    label are joined.

    >>> print(labels_of([("gen_ai.agent.name", 'the "best"'), ("ok", True)]))
    gen_ai_agent_name="the \"best\"",ok="true"
    """
    found: dict[str, str] = {}
    for key, value in attributes:
        label = _UNSAFE.sub("_", key)
        label = f"_{label}" if label[:1].isdigit() else label
        text = str(value).lower() if isinstance(value, bool) else value
        found[label] = f"{found[label]};{text}" if label in found else text
    return ",".join(f'{label}="{value.translate(_ESCAPES)}"' for label, value in found.items())


class Prometheus:
    """Writes an exposition as text. The labels of agents are kept from one scrape to the next.

    `samples` are those of agents that are written, by their names in Prometheus; all without it.
    Of a histogram whose buckets are not among them, sum and count are.
    """

    def __init__(
        self,
        exposition: Exposition,
        resource: Mapping[str, str],
        samples: Container[str] | None = None,
    ) -> None:
        self._exposition = exposition
        self._left_out = frozenset(
            name
            for name, family in _FAMILIES.items()
            if samples is not None
            and name not in _ALWAYS
            and not any(family + suffix in samples for suffix in _SUFFIXES)
        )
        self._without_buckets = frozenset(
            name
            for name in _BOUNDS
            if samples is not None
            and name not in _ALWAYS
            and f"{_FAMILIES[name]}_bucket" not in samples
        )
        self._target = f"target_info{{{labels_of(resource.items())}}} 1\n"
        self._labels: dict[tuple[AgentKey, str | None], str] = {}

    def text(self, *, openmetrics: bool = False) -> Iterator[str]:
        """Yield all families, a large one in several pieces."""
        family, kind = ("target", "info") if openmetrics else ("target_info", "gauge")
        yield f"# TYPE {family} {kind}\n# HELP {family} Target metadata\n{self._target}"
        yield from self._gauges(openmetrics=openmetrics)
        yield from self._series(openmetrics=openmetrics)
        lines: dict[str, list[str]] = {}
        for name, value, labels in self._exposition.own():
            line = f"{_sample_name(OWN[name])}{_braced(labels_of(labels.items()))} {value!r}\n"
            lines.setdefault(name, []).append(line)
        for name, found in lines.items():
            yield _head(OWN[name], openmetrics=openmetrics) + "".join(found)
        if openmetrics:
            yield "# EOF\n"

    def _gauges(self, *, openmetrics: bool) -> Iterator[str]:
        lines: dict[str, list[str]] = {name: [] for name in GAUGES if name not in self._left_out}
        known: dict[tuple[AgentKey, str | None], str] = {}
        for some in self._exposition.gauges():
            for gauges in some:
                of = gauges.key, gauges.window
                labels = known[of] = self._labels.get(of) or labels_of(gauges.attributes.items())
                for name, own, value in gauges.points():
                    found = lines.get(name)
                    if found is not None:
                        extra = "," + labels_of(own) if own else ""
                        found.append(f"{labels}{extra}}} {value!r}\n")
        self._labels = known
        for name in list(lines):
            found = lines.pop(name)
            if found:
                head = _head(GAUGES[name], openmetrics=openmetrics)
                yield head + _after(f"{_FAMILIES[name]}{{", found)

    def _series(self, *, openmetrics: bool) -> Iterator[str]:
        last: Instrument | None = None
        write = partial(_lines, openmetrics=openmetrics, without_buckets=self._without_buckets)
        for spec, some in self._exposition.series(write, self._left_out):
            if some:
                yield (
                    "".join(some)
                    if spec is last
                    else _head(spec, openmetrics=openmetrics) + "".join(some)
                )
                last = spec


def _head(spec: Instrument, *, openmetrics: bool) -> str:
    """Return the lines above a family. OpenMetrics names a counter without its suffix, and a unit
    that ends the name.
    """
    family = family_of(spec)
    has_unit = openmetrics and spec.unit in _UNITS and family.endswith(f"_{_UNITS[spec.unit]}")
    unit = f"# UNIT {family} {_UNITS[spec.unit]}\n" if has_unit else ""
    if spec.kind == "counter" and not openmetrics:
        family += "_total"
    about = spec.description.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# TYPE {family} {_TYPES[spec.kind]}\n{unit}# HELP {family} {about}\n"


def _lines(
    spec: Instrument,
    labels: Labels,
    series: Series,
    *,
    openmetrics: bool,
    without_buckets: Container[str],
) -> str:
    """Return the lines of one series of the registry."""
    if not series.text:
        series.text = labels_of(labels)
    if isinstance(series, HistogramSeries):
        first = len(spec.boundaries) if spec.name in without_buckets else 0
        return _histogram(spec, series, first, openmetrics=openmetrics)
    exemplar = _exemplar(series.exemplar) if openmetrics else ""
    return f"{_sample_name(spec)}{_braced(series.text)} {series.value}{exemplar}\n"


def _histogram(spec: Instrument, series: HistogramSeries, first: int, *, openmetrics: bool) -> str:
    """Return the lines of a histogram, without the buckets before the first. The last one, which
    holds all, is always there.
    """
    family = _FAMILIES[spec.name]
    labels = series.text
    comma = "," if labels else ""
    exemplars = map(_exemplar, series.exemplars) if openmetrics else [""] * len(series.counts)
    buckets = zip(_BOUNDS[spec.name], accumulate(series.counts), exemplars, strict=True)
    lines = [
        f'{bound}"}} {count}{exemplar}\n' for bound, count, exemplar in islice(buckets, first, None)
    ]
    return (
        _after(f'{family}_bucket{{{labels}{comma}le="', lines)
        + f"{family}_count{_braced(labels)} {series.count}\n"
        + f"{family}_sum{_braced(labels)} {series.total!r}\n"
    )


def _after(beginning: str, lines: Iterable[str]) -> str:
    """Return lines that all have the same beginning, each without it."""
    return beginning + beginning.join(lines)


def _exemplar(exemplar: Exemplar | None) -> str:
    if exemplar is None:
        return ""
    trace = exemplar.trace_id.hex()
    span = exemplar.span_id.hex()
    return (
        f' # {{trace_id="{trace}",span_id="{span}"}} {exemplar.value!r} '
        f"{exemplar.time_ns / 1e9:.3f}"
    )


def _sample_name(spec: Instrument) -> str:
    return _FAMILIES[spec.name] + ("_total" if spec.kind == "counter" else "")


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


_ALWAYS: Final = frozenset({*OWN, *(spec.name for spec in names.STANDARD)})
"""Metrics that no choice leaves out: self-telemetry, and those that a setting asks for."""
_FAMILIES: Final = {name: family_of(spec) for name, spec in {**GAUGES, **OWN, **SPECS}.items()}
_BOUNDS: Final = {
    name: (*(f"{bound:.12g}" for bound in spec.boundaries), "+Inf")
    for name, spec in SPECS.items()
    if spec.kind == "histogram"
}
"""The labels `le` of each histogram."""
