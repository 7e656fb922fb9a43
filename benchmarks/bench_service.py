"""What a span costs a service from end to end, beside a Collector that makes metrics of the same requests.

Each is a process of its own and gets the same requests of 512 spans of agents from the same client over OTLP/HTTP. What is
counted is the CPU time that the system charges to the process and to all that it began, from one round's first request to the
next one's: runs that close later, collecting garbage and checkpoints are in it. A run lingers and can be reopened for a
second only, so that what a round costs does not fall into another's.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import serving
from benchmarks.measure import Row, ratios, row
from benchmarks.payloads import SPANS, Traffic
from tests.real.collector.handle import Collector
from tests.real.install import components
from tests.real.process import Process

ROUNDS: Final = 7
WARM: Final = 2
"""Rounds before, that fill all windows."""
REQUESTS: Final = 120
"""A round takes long against the hundredths of a second in which systems count."""
JOURNAL: Final = 1.6
"""1.24 was measured first, when a span took over thirty microseconds, and 1.42 when it took twenty and the journal nine."""
CLOSED: Final = 2.5
"""Seconds after which every run is closed and settled."""
QUICK: Final = (
    "--metrics", "off", "--set", "assembly.linger=1s", "--set", "assembly.reopen=1s", "--set", "assembly.remember=30s",
    "--set", "service.commit_timeout=60s",
)  # fmt: skip
SPAN_METRICS: Final[Mapping[str, Any]] = {
    "receivers": {"otlp": {"protocols": {"grpc": {}, "http": {}}}},
    "connectors": {"span_metrics": {"dimensions": [{"name": "gen_ai.agent.name"}, {"name": "gen_ai.tool.name"}]}},
    "exporters": {"nop": {}},
    "service": {
        "pipelines": {
            "traces": {"receivers": ["otlp"], "exporters": ["span_metrics"]},
            "metrics": {"receivers": ["span_metrics"], "exporters": ["nop"]},
        }
    },
}
"""Two dimensions beside the connector's own four."""


class Candidate(NamedTuple):
    """A process that takes requests at a place."""

    process: Process
    place: str


def rows() -> list[Row]:
    """The service beside a Collector, and with its journal beside itself without."""
    with candidates() as found:
        times = dict(zip(found, measured(list(found.values())), strict=True))
    ours, journal, theirs = times["ours"], times["journal"], times.get("collector")
    told = [
        row("the service with its journal, a span", ratios(journal, ours), at_most=JOURNAL, against="without"),
        _each("the service, a span", ours),
    ]
    if theirs is None:
        return told
    name = f"Collector {components()['collector'].version}"
    against = f"{name}, OTLP/HTTP receiver and span_metrics with two dimensions"
    beside = row("the service, a span from end to end", ratios(ours, theirs), at_most=1.0, against=against)
    return [beside, *told, _each(f"{name}, a span", theirs)]


@contextmanager
def candidates() -> Generator[Mapping[str, Candidate]]:
    """All that are measured, running."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        found = {"ours": _service(folder / "plain"), "journal": _service(folder / "kept", "--state", f"{folder}/state")}
        collector = components()["collector"]
        if collector.ready():
            found["collector"] = _collector(folder / "collector", collector.folder / "bin" / "otelcol")
        else:
            print("left out: no Collector here; `python tests/real/install.py collector` makes one", file=sys.stderr)
        for candidate in found.values():
            running.callback(candidate.process.stop)
            candidate.process.start()
        yield found


def measured(found: Sequence[Candidate], rounds: int = ROUNDS, requests: int = REQUESTS) -> list[list[float]]:
    """CPU seconds a span of each in each round; every round begins with another of them."""
    traffic, times, before = Traffic(), list[list[float]](), list[float]()
    for turn in range(WARM + rounds):
        bodies = traffic.requests(requests)
        for place in range(len(found)):
            serving.send(found[(turn + place) % len(found)].place, bodies)
        time.sleep(CLOSED)
        now = [serving.cpu(one.process.pid) for one in found]
        if turn >= WARM:
            times.append([(late - early) / (requests * SPANS) for late, early in zip(now, before, strict=True)])
        before = now
    return [list(one) for one in zip(*times, strict=True)]


def _service(folder: Path, *options: str) -> Candidate:
    return Candidate(*serving.service(folder, *QUICK, *options))


def _collector(folder: Path, program: Path) -> Candidate:
    folder.mkdir()
    collector = Collector(program, folder, SPAN_METRICS, {}, {})
    return Candidate(collector, collector.http.partition("//")[2])


def _each(name: str, times: Sequence[float]) -> Row:
    return row(name, times, unit="µs", scale=1e6, against=f"requests of {SPANS} spans over OTLP/HTTP")


if __name__ == "__main__":
    print(json.dumps([one._asdict() for one in rows()], indent=1, ensure_ascii=False))
