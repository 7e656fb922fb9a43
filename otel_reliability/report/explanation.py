"""What a number means, how it is made, what it needs and how to improve it: `otel-reliability explain`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

from otel_reliability.errors import UnknownMetric
from otel_reliability.metrics.passes.summary import TARGETS
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.model.reading import MetricSpec
from otel_reliability.report.scorecard import ALL_SPECS
from otel_reliability.telemetry.names import PREFIX

OF_TARGETS: Final[Mapping[str, str]] = {
    "reliability.runs": "How many attempts at the task have a known outcome.",
    "reliability.pass_at_k": "100 if any of the attempts at the task passed, else 0.",
    "reliability.passhat_k": "100 · (c/N)^N, cut to a whole number: the estimate that all of N attempts at the task pass.",
    "reliability.variance_amplification": "How flaky the attempts at the task are: 0 all end alike, 100 half and half.",
    "reliability.graceful_degradation": "100 when every attempt passed; late failures cost most.",
}
"""The targets of one task, in whole percents; in a gate they must hold for every task."""


def explain(name: str) -> list[tuple[str, str]]:
    """(what, text) about one number, by its own name or that of its OpenTelemetry metric. Raises `UnknownMetric`.

    >>> explain("agent.reliability.path_entropy")[0]
    ('Path entropy', 'How much the order of tool calls varies from run to run: 0 always the same, 1 never twice the same.')
    """
    bare = name.strip().removeprefix(PREFIX)
    if bare in OF_TARGETS:
        return [*_target(bare)]
    if bare not in ALL_SPECS:
        known = (*ALL_SPECS, *TARGETS)
        near = difflib.get_close_matches(bare, known, n=3) or difflib.get_close_matches(bare, known, n=3, cutoff=0.0)
        raise UnknownMetric(name, tuple(near))
    return [*_metric(ALL_SPECS[bare])]


def families() -> dict[str, list[MetricSpec]]:
    """All numbers by family, in the order of reports."""
    found: dict[str, list[MetricSpec]] = {}
    for spec in ALL_SPECS.values():
        found.setdefault(spec.family, []).append(spec)
    return found


def _metric(spec: MetricSpec) -> Iterator[tuple[str, str]]:
    yield spec.title, spec.description
    yield "Formula", spec.formula
    yield "Range", _range(spec)
    if spec.name in PENALTIES:
        yield "In the score", f"costs up to {PENALTIES[spec.name]:.0f} of the 100 points"
    yield "Needs", spec.evidence
    yield "To improve", spec.improve
    yield "Source", spec.source
    yield "OpenTelemetry", f"{PREFIX}{spec.name}, unit {spec.unit}, {spec.stability}"
    yield "In a gate", f"--require '{spec.name}{'>=' if spec.direction == 'higher' else '<='}…'"


def _range(spec: MetricSpec) -> str:
    low = "any number" if spec.low is None else f"from {spec.low:g}"
    high = "" if spec.high is None else f" to {spec.high:g}"
    good = {"lower": ", lower is better", "higher": ", higher is better", "neutral": ""}[spec.direction]
    return f"{low}{high}{good}"


def _target(name: str) -> Iterator[tuple[str, str]]:
    yield name, OF_TARGETS[name]
    yield "Range", "whole numbers from 1" if name == "reliability.runs" else "whole percents from 0 to 100"
    yield "Needs", "1 run of the task with a known outcome; without task ids all runs are attempts at one"
    yield "Source", "mcptest, reliability reporting"
    yield "In a gate", f"--require '{name}>=…', for every task; tasks[\"…\"].{name} for one"
