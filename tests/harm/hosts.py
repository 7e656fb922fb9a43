"""Host programs that a test starts: whole processes, in production (nothing of ours
is loud there).
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
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

FORKS = """
import gc, genai_prices.data, genai_prices.data_snapshot, json, Levenshtein, os, signal
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        break
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    os._exit(0)
signal.alarm(asked["patience"])
for number, name in enumerate(("/dev/null", asked["out"], asked["err"])):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
exec(asked["code"])
"""
"""After the prelude: for each program that is asked for, a process that has imported what the
prelude names, and what a run makes load at once; it runs and ends like any other.
"""


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
    fresh: bool = False,
) -> Host:
    """Run a program to its end, as `python -c`; under `opentelemetry-instrument` if asked. `first`:
    code before all imports. Unless it is to be a `fresh` process, or more is asked of it, it is
    forked from one where everything is imported.

    A program that is `measured` runs without coverage, which would count our lines and not the
    SDK's.
    """
    if hasattr(os, "fork") and not (fresh or env or instrument or measured or first):
        return _forked(textwrap.dedent(code))
    starter = (
        [str(Path(sys.executable).with_name("opentelemetry-instrument"))] if instrument else []
    )
    apart = ("OTEL_", "COV_", "COVERAGE_") if measured else ("OTEL_",)
    done = subprocess.run(
        [*starter, sys.executable, "-c", first + PRELUDE + textwrap.dedent(code)],
        cwd=PROJECT,
        env={**_quiet(apart), **(env or {})},
        capture_output=True,
        text=True,
        timeout=3_600 if measured else PATIENCE,
        check=False,
    )
    return Host(done.returncode, done.stdout, done.stderr)


def _quiet(apart: tuple[str, ...]) -> dict[str, str]:
    """The environment without what makes us loud, and without variables that begin like these."""
    return {
        key: value
        for key, value in os.environ.items()
        if key != LOUD_VARIABLE and not key.startswith(apart)
    }


@functools.cache
def _forking() -> subprocess.Popen[str]:
    """The process that forks hosts. It ends with the tests: nothing more is written to it."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + FORKS],
        cwd=PROJECT,
        env=_quiet(("OTEL_",)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _forked(code: str) -> Host:
    process = _forking()
    assert process.stdin is not None
    assert process.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        asked = {"code": code, "out": str(out), "err": str(err), "patience": PATIENCE}
        print(json.dumps(asked), file=process.stdin, flush=True)
        status = int(process.stdout.readline())
        return Host(status, out.read_text(), err.read_text())


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
