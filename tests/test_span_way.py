"""The way of a span: the modules that it enters from OTLP bytes to a gauge, and what it leaves; and
no circle of imports.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import grimp

import otel_reliability
from benchmarks.otlp import request
from benchmarks.shapes import Shape, each_run
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.service.answers import Encoding, OtlpSignal
from otel_reliability.service.decoded import Decoder
from otel_reliability.telemetry.exposition import Exposition, Registry
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.testing import agent, tool

MAX_MODULES: Final = 74
"""Single metrics and adapters are not counted. A span passes no more code than before, but assembly
and the reader of spans have a file per concept, where a few files held ten of them. The number may
fall; it rises only for a notion that had no home: sums of what may be unknown (`model/sums.py`), the interval of a share, which the
verdict rests on (`statistics/intervals.py`), errors that are control flow, what is remembered by
key, requests (`conventions/requests.py`), ratios of two sums (`metrics/_support/ratio.py`), what is read of an engine
(`read_view.py`), agents that steps name (`owners.py` of assembly and of conventions), and attempts that are replayed
in one trace and in several (`assembly/replays.py`, `assembly/replayed_runs.py`), and conversations by their responses (`assembly/response_chains.py`), and
runs that go on with one that waited (`assembly/resumptions.py`), groups of alike requests
(`windows/input_groups.py`), whether a run is known to have failed (`model/row.py`), cached input
(`model/cached_input.py`), runs that two instrumentations report (`assembly/echoes.py`), and what
one file of groups held (`run_group.py`, `latest_pairs.py`, `group_metric.py`, `task_outcomes.py` of
`metrics/_support`).
"""

PACKAGE: Final = Path(otel_reliability.__file__).parent


def test_a_span_enters_few_modules_on_its_way_to_a_gauge() -> None:
    """From OTLP bytes by decoder, conventions, assembly, windows and metrics to Prometheus text,
    without change detection.
    """
    now = 0.0
    runs = each_run(Shape(agents=1, sessions=False))
    settings = Settings.load(
        {"assembly": {"linger": 1.0, "reopen": 1.0}, "change": {"enabled": False}}
    )
    engine = Engine(settings, clock=lambda: now, wall=None)
    decode = Decoder(engine.reader, native=False)
    sources = [(engine, Registry(time.time_ns))]
    prometheus = Prometheus(Exposition(lambda: sources, tuple), {})
    with entered_modules() as entered:
        for _ in range(2):
            body = request(next(runs)).SerializeToString()
            engine.receive(decode(OtlpSignal.TRACES, Encoding.PROTOBUF, body).spans)
        now = 5.0
        engine.tick()
        text = "".join(prometheus.text())

    assert "agent_reliability_path_similarity" in text
    counted = {
        name
        for name in entered
        if not is_metric(name) and not name.startswith("conventions/adapters/")
    }
    assert len(counted) <= MAX_MODULES, sorted(counted)


def test_runs_leave_nothing_to_the_garbage_collector() -> None:
    """Spans in circles of references would stay until it runs, which in a service is after a
    million objects.
    """
    now = 0.0
    settings = Settings.load({"assembly": {"linger": 1.0, "reopen": 1.0, "idle_timeout": 5.0}})
    engine = Engine(settings, clock=lambda: now, wall=None)
    decode = Decoder(engine.reader, native=False)
    shapes = [each_run(Shape(agents=1)), each_run(Shape(agents=1, sub_agent=True), seed=8)]

    def receive() -> None:
        nonlocal now
        body = request([sent for runs in shapes for sent in next(runs)]).SerializeToString()
        lost_its_parent = tool(3, 2, trace=int(now) + 1, start=2.0)
        engine.receive(decode(OtlpSignal.TRACES, Encoding.PROTOBUF, body).spans)
        engine.receive([agent(1, trace=int(now) + 1, end=9.0), lost_its_parent])
        for _ in range(10):
            now += 1.0
            engine.tick()

    def garbage(requests: int) -> int:
        for _ in range(requests):
            receive()
        return gc.collect()

    gc.disable()
    try:
        garbage(1)
        assert garbage(1) == garbage(3)
    finally:
        gc.enable()
    assert engine.accounts["used", ""] == engine.accounts["received", ""] > 100


def test_no_modules_import_one_another() -> None:
    """Directly or through others. Imports for type annotations only are left out."""
    graph = grimp.build_graph("otel_reliability", exclude_type_checking_imports=True)
    circles = {
        module
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if graph.chain_exists(importer=imported, imported=module)
    }
    assert circles == set()


def is_metric(name: str) -> bool:
    return (
        name.startswith("metrics/")
        and "_support" not in name
        and not name.endswith(("/base.py", "/numbers.py"))
    )


@contextmanager
def entered_modules() -> Generator[set[str]]:
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if (
            event == "call"
            and file.is_relative_to(PACKAGE)
            and not frame.f_code.co_name.startswith("<")
        ):
            entered.add(file.relative_to(PACKAGE).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(before)
