"""Host programs that a test starts: whole processes, in production (nothing of ours
is loud there).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from otel_reliability.telemetry.guard import LOUD_VARIABLE

PATIENCE = 600
PROJECT = Path(__file__).resolve().parents[2]

PRELUDE = '''
import sys
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from otel_reliability.exporter import ReliabilitySpanExporter
from otel_reliability.processor import ReliabilitySpanProcessor

RESOURCE = Resource({"service.name": "shop", "service.instance.id": "1"})

def meters():
    """A MeterProvider that prints what it collects, once an hour and at its end."""
    reader = PeriodicExportingMetricReader(ConsoleMetricExporter(), export_interval_millis=3_600_000)
    return MeterProvider([reader], resource=RESOURCE)

def agent(tracer, tools="search reply", name="agent"):
    """One run of an agent."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    with tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes):
        for tool in tools.split():
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                pass
'''


class Host(NamedTuple):
    """A host program that has ended."""

    code: int
    out: str
    err: str

    def collections(self) -> list[dict[str, Any]]:
        return [found for found in _objects(self.out) if "resource_metrics" in found]

    def value(self, name: str, **labels: Any) -> Any:
        """A value (of a histogram: how many), over all points with these labels, in the last
        collection that has any.
        """
        wanted = {key.replace("__", "."): value for key, value in labels.items()}
        for collection in reversed(self.collections()):
            points = [
                point
                for point in _points(collection, name)
                if wanted.items() <= point["attributes"].items()
            ]
            if points:
                return sum(
                    point["count"] if "count" in point else point["value"] for point in points
                )
        return None


def run_host(
    code: str,
    *,
    env: Mapping[str, str] | None = None,
    instrument: bool = False,
    measured: bool = False,
    first: str = "",
) -> Host:
    """Run a program to its end, as `python -c`; under `opentelemetry-instrument` if asked. `first`:
    code before all imports.

    A program that is `measured` runs without coverage, which would count our lines and not the
    SDK's.
    """
    starter = (
        [str(Path(sys.executable).with_name("opentelemetry-instrument"))] if instrument else []
    )
    apart = ("OTEL_", "COV_", "COVERAGE_") if measured else ("OTEL_",)
    quiet = {
        key: value
        for key, value in os.environ.items()
        if key != LOUD_VARIABLE and not key.startswith(apart)
    }
    done = subprocess.run(
        [*starter, sys.executable, "-c", first + PRELUDE + textwrap.dedent(code)],
        cwd=PROJECT,
        env={**quiet, **(env or {})},
        capture_output=True,
        text=True,
        timeout=3_600 if measured else PATIENCE,
        check=False,
    )
    return Host(done.returncode, done.stdout, done.stderr)


def _points(collection: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    scopes = (
        scope for resource in collection["resource_metrics"] for scope in resource["scope_metrics"]
    )
    metrics = [metric for scope in scopes for metric in scope["metrics"] if metric["name"] == name]
    return [point for metric in metrics for point in metric["data"]["data_points"]]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
            yield found
        except json.JSONDecodeError:
            end = at + 1
        at = text.find("{", end)
