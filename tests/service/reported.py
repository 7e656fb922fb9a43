"""What `otel-reliability report --format json` computes from a recording, under the names that
Prometheus has for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.passes.series import EMITTED_K
from otel_reliability.metrics.stability.flag import TOKEN_PRESSURE_HIGH
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.model.flaws import INVENTED_SESSIONS

Labels: TypeAlias = frozenset[tuple[str, str]]
Numbers: TypeAlias = dict[tuple[str, Labels], float]

PREFIX = "agent_reliability_"
OF_SERIES = frozenset(
    {"tier", "flag", "pass_at_k", "pass_hat_k", "decay_curve", "data_quality.findings"}
)
"""Metrics that are several series each."""
NOT_EMITTED = frozenset(spec.name for spec in ALL_SPECS.values() if not spec.emitted)
"""Metrics that reports have, and gauges do not."""
PER_SERVER = frozenset({"__name__", "job", "instance", "exported_job", "exported_instance"})
"""Labels that say by which way a number came."""


def report(*recordings: Path) -> Mapping[str, Any]:
    """The document, from the command as users give it."""
    command = [
        sys.executable,
        "-m",
        "otel_reliability.cli",
        "report",
        "--format",
        "json",
        "--no-intervals",
        "-q",
    ]
    done = subprocess.run(
        [*command, *map(str, recordings)], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


def gauges_of(document: Mapping[str, Any]) -> Numbers:
    """Every number of every agent that a gauge tells."""
    return {
        (PREFIX + name, whose(agent) | labels): value
        for agent in document["agents"]
        for name, labels, value in _gauges(agent)
    }


def whose(agent: Mapping[str, Any]) -> Labels:
    named = {
        "service_namespace": agent["service_namespace"],
        "service_name": agent["service"],
        "deployment_environment_name": agent["environment"],
        "gen_ai_agent_name": agent["agent"],
    }
    return frozenset((key, value) for key, value in named.items() if value is not None)


def own(labels: Mapping[str, str]) -> Labels:
    """Labels without those that say by which way a number came, and without the zero that
    OpenMetrics adds to a bound.
    """
    plain = {
        key: value.removesuffix(".0") if key == "le" else value for key, value in labels.items()
    }
    return frozenset((key, value) for key, value in plain.items() if key not in PER_SERVER)


def _gauges(agent: Mapping[str, Any]) -> Iterator[tuple[str, Labels, float]]:
    for name, reading in agent["metrics"].items():
        if name not in OF_SERIES | NOT_EMITTED and reading["value"] is not None:
            yield name.replace(".", "_"), frozenset(), reading["value"]
    yield "last_run_timestamp_seconds", frozenset(), _seconds(agent["end"])
    yield from _flaws(agent)
    yield from _grades(agent)
    yield from _passes(agent)


def _flaws(agent: Mapping[str, Any]) -> Iterator[tuple[str, Labels, float]]:
    for one in agent["data_quality"]:
        if one["kind"] != INVENTED_SESSIONS:  # a flaw of a window, of no run in it
            yield "data_quality_findings", frozenset({("kind", one["kind"])}), float(one["count"])


def _grades(agent: Mapping[str, Any]) -> Iterator[tuple[str, Labels, float]]:
    if agent["tier"] is not None:
        for tier in Tier:
            yield "tier", frozenset({("tier", tier.name)}), float(tier.name == agent["tier"])
    if agent["metrics"]["token_budget_pressure"]["value"] is not None:
        yield (
            "flag",
            frozenset({("flag", TOKEN_PRESSURE_HIGH)}),
            float(TOKEN_PRESSURE_HIGH in agent["flags"]),
        )


def _passes(agent: Mapping[str, Any]) -> Iterator[tuple[str, Labels, float]]:
    passes = agent["passes"]
    for name in ("pass_at_k", "pass_hat_k"):
        for k, value in passes[name].items():
            if int(k) in EMITTED_K:
                yield name, frozenset({("k", k)}), value
    curves = [task["decay_curve"] for task in passes["tasks"]]
    for k in EMITTED_K:
        if curves and k <= min(map(len, curves)):
            yield "decay_curve", frozenset({("k", str(k))}), min(curve[k - 1] for curve in curves)


def _seconds(moment: str) -> float:
    """A time of a report, all nine decimals of it, as Unix time."""
    whole, _, rest = moment.removesuffix("Z").partition(".")
    return (int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * 10**9 + int(rest)) / 1e9
