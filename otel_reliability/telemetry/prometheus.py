"""Prometheus text and OpenMetrics (with exemplars), written line by line.

Ten thousand agents are a hundred and fifty thousand lines a scrape. Through the SDK's exporter one line costs some thirty
microseconds, a hundred times what it costs to write it, so it is written here; tests hold it to what the OTLP push says and
to the parsers of `prometheus_client`.

Source: OpenTelemetry specification, "Prometheus and OpenMetrics compatibility"; OpenMetrics 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Final, TypeAlias

from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES, OWN, Exposition
from otel_reliability.telemetry.names import Instrument, InstrumentKind
from otel_reliability.telemetry.points import Shown
from otel_reliability.telemetry.series import Cell, Exemplar, Labels, Spread

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_UNITS: Final = {"s": "seconds", "By": "bytes"}
_TYPES: Final[Mapping[InstrumentKind, str]] = {
    "gauge": "gauge",
    "counter": "counter",
    "up_down_counter": "gauge",
    "histogram": "histogram",
}
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")
_SEVERAL: Final = re.compile(r"_+")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

Lines: TypeAlias = dict[str, list[str]]


def family_of(spec: Instrument) -> str:
    """The name of an instrument in Prometheus, without the suffix of counters: any translator of OTLP makes the same of it.

    >>> family_of(names.LAST_RUN), family_of(names.RUN_SCORE)
    ('agent_reliability_last_run_seconds', 'agent_reliability_run_score')
    """
    name = _SEVERAL.sub("_", _UNSAFE.sub("_", spec.name))
    unit = _UNITS.get(spec.unit, "")
    return f"{name}_{unit}" if unit and unit not in name.split("_") else name


def labels_of(attributes: Iterable[tuple[str, str | bool]]) -> str:
    r"""Attributes as labels stand between braces. Of two that become one label, the values are joined.

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
    """Writes what an exposition tells. Labels of agents are kept from one scrape to the next."""

    def __init__(self, exposition: Exposition, resource: Mapping[str, str]) -> None:
        self._exposition = exposition
        self._target = f"target_info{{{labels_of(resource.items())}}} 1\n"
        self._labels: dict[tuple[AgentKey, str | None], str] = {}

    def text(self, *, openmetrics: bool = False) -> Iterator[str]:
        """All families, one a piece."""
        yield from self._target_info(openmetrics=openmetrics)
        yield from self._gauges(openmetrics=openmetrics)
        yield from self._cells(openmetrics=openmetrics)
        for name, points in self._exposition.own().items():
            spec = OWN[name]
            sample = _sample_name(spec)
            lines = [f"{sample}{_braced(labels_of(labels.items()))} {_number(value)}\n" for _, value, labels in points]
            yield _head(spec, openmetrics=openmetrics) + "".join(lines)
        if openmetrics:
            yield "# EOF\n"

    def _target_info(self, *, openmetrics: bool) -> Iterator[str]:
        family, kind = ("target", "info") if openmetrics else ("target_info", "gauge")
        yield f"# TYPE {family} {kind}\n# HELP {family} Who tells this.\n{self._target}"

    def _gauges(self, *, openmetrics: bool) -> Iterator[str]:
        lines: Lines = {name: [] for name in GAUGES}
        known: dict[tuple[AgentKey, str | None], str] = {}
        for some in self._exposition.gauges():
            for shown in some:
                known[shown.key, shown.window] = labels = self._labels_of(shown)
                _write(lines, shown, labels)
        self._labels = known
        for name, found in lines.items():
            if found:
                yield _head(GAUGES[name], openmetrics=openmetrics) + "".join(found)

    def _labels_of(self, shown: Shown) -> str:
        found = self._labels.get((shown.key, shown.window))
        if found is not None:
            return found
        window = () if shown.window is None else ((names.WINDOW, shown.window),)
        return labels_of((*of_agent(shown.key).items(), *window))

    def _cells(self, *, openmetrics: bool) -> Iterator[str]:
        last: Instrument | None = None
        for spec, some in self._exposition.cells(partial(_cell, openmetrics=openmetrics)):
            yield "".join(some) if spec is last else _head(spec, openmetrics=openmetrics) + "".join(some)
            last = spec


def _write(lines: Lines, shown: Shown, labels: str) -> None:
    """The lines of one agent in one window."""
    for spec, attributes, reading in shown.series:
        name = FULL_NAMES[spec.name]
        extra = "," + labels_of(attributes) if attributes else ""
        lines[name].append(f"{_FAMILIES[name]}{{{labels}{extra}}} {reading.value!r}\n")
    for name, attributes, value in shown.others:
        extra = "," + labels_of(attributes) if attributes else ""
        lines[name].append(f"{_FAMILIES[name]}{{{labels}{extra}}} {value!r}\n")


def _head(spec: Instrument, *, openmetrics: bool) -> str:
    """What stands above the lines of a family. OpenMetrics names a counter without its suffix, and a unit that ends the name."""
    family = family_of(spec)
    told = openmetrics and spec.unit in _UNITS and family.endswith(f"_{_UNITS[spec.unit]}")
    unit = f"# UNIT {family} {_UNITS[spec.unit]}\n" if told else ""
    if spec.kind == "counter" and not openmetrics:
        family += "_total"
    about = spec.description.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# TYPE {family} {_TYPES[spec.kind]}\n{unit}# HELP {family} {about}\n"


def _cell(spec: Instrument, labels: Labels, cell: Cell, *, openmetrics: bool) -> str:
    if not cell.text:
        cell.text = labels_of(labels)
    if isinstance(cell, Spread):
        return "".join(_spread(spec, cell, openmetrics=openmetrics))
    return f"{_sample_name(spec)}{_braced(cell.text)} {cell.value}{_exemplar(cell.exemplar) if openmetrics else ''}\n"


def _spread(spec: Instrument, cell: Spread, *, openmetrics: bool) -> Iterator[str]:
    family, labels, comma = family_of(spec), cell.text, "," if cell.text else ""
    bounds = (*(f"{bound:.12g}" for bound in spec.boundaries), "+Inf")
    for bound, count, exemplar in zip(bounds, accumulate(cell.counts), cell.exemplars, strict=True):
        told = _exemplar(exemplar) if openmetrics else ""
        yield f'{family}_bucket{{{labels}{comma}le="{bound}"}} {count}{told}\n'
    yield f"{family}_count{_braced(labels)} {cell.count}\n"
    yield f"{family}_sum{_braced(labels)} {_number(cell.total)}\n"


def _exemplar(exemplar: Exemplar | None) -> str:
    if exemplar is None:
        return ""
    trace, span = exemplar.trace_id.hex(), exemplar.span_id.hex()
    return f' # {{trace_id="{trace}",span_id="{span}"}} {_number(exemplar.value)} {exemplar.time_ns / 1e9:.3f}'


def _sample_name(spec: Instrument) -> str:
    return family_of(spec) + ("_total" if spec.kind == "counter" else "")


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _number(value: float) -> str:
    return repr(value)


_FAMILIES: Final = {name: family_of(spec) for name, spec in GAUGES.items()}
