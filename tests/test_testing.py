from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from otel_reliability import testing
from otel_reliability.model.row import Retries
from otel_reliability.model.run import Tools
from otel_reliability.model.span import (
    KIND_CLIENT,
    Evaluation,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    Session,
    Tokens,
    ToolFacts,
)
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import (
    EPOCH_NS,
    FakeClock,
    agent,
    at,
    call,
    handoff,
    model,
    other,
    row,
    run,
    span,
    span_id,
    tool,
    trace_id,
    workflow,
    write_otlp,
)


def test_clock_stands_until_it_is_wound() -> None:
    """Both faces of the clock move together, and only when told; backwards too."""
    clock = FakeClock(10)

    assert (clock(), clock(), clock.wall()) == (10, 10, EPOCH_NS + 10_000_000_000)
    clock.advance(0.5)
    assert (clock(), clock.wall()) == (10.5, EPOCH_NS + 10_500_000_000)
    clock.advance(-10.5)
    assert (clock(), clock.wall()) == (0, EPOCH_NS)


def test_span_from_small_numbers() -> None:
    """Ids are the numbers given, times seconds after the epoch of the builders."""
    built = span(3, 2, trace=7, start=1.5, end=2, events=[("e", {"k": 1})], links=[(8, 9)], remote=None)

    assert (built.trace_id, built.span_id, built.parent_id) == (trace_id(7), span_id(3), span_id(2))
    assert (built.start_ns, built.end_ns) == (EPOCH_NS + 1_500_000_000, EPOCH_NS + 2_000_000_000)
    assert built.events[0].time_ns == built.start_ns
    assert built.links == ((trace_id(8), span_id(9)),)
    assert built.parent_remote is None
    assert built.resource.service_name == "shop"


def test_agent_spans() -> None:
    """Each builder gives its own kind and facts, and takes the same place."""
    built = [
        agent(1, called="planner", session=Session(0, "s")),
        workflow(2, 1),
        model(3, 2, tokens=(5, None)),
        tool(4, 2, "search", failed=True, call_id="c", start=3),
        handoff(5, 2, "writer"),
        other(6, 2, trace=9, remote=True),
    ]

    assert [s.kind for s in built] == [Kind.AGENT, Kind.WORKFLOW, Kind.MODEL, Kind.TOOL, Kind.HANDOFF, Kind.OTHER]
    assert [type(s.facts) for s in built[:5]] == [InvocationFacts, InvocationFacts, ModelFacts, ToolFacts, HandoffFacts]
    assert built[0].session == Session(0, "s")
    assert isinstance(built[2].facts, ModelFacts)
    assert built[2].facts.tokens == Tokens(5, None)
    assert built[2].span_kind == KIND_CLIENT
    assert isinstance(built[3].facts, ToolFacts)
    assert (built[3].failed, built[3].facts.calls[0].failed, built[3].facts.calls[0].call_id) == (True, True, "c")
    assert (built[3].start_ns, built[3].end_ns) == (at(3), at(4))
    assert (built[5].facts, built[5].trace_id, built[5].parent_remote) == (None, trace_id(9), True)


def test_run_tells_its_path() -> None:
    """A run's calls are its path, one a second, and lie within it; runs built in order are in order."""
    first, second = run(["search", "book"]), run(["search"], 2)

    assert first.tool_calls is not None
    assert [c.name for c in first.tool_calls] == list(first.path or ())
    assert first.start_ns <= first.tool_calls[0].start_ns < first.tool_calls[1].end_ns <= first.end_ns
    assert first.end_ns < second.start_ns
    assert first.run_id != second.run_id


def test_run_that_cannot_be_observed() -> None:
    """Without a path the tools are unobservable, and nothing is claimed of calls."""
    hidden = run(None)

    assert (hidden.path, hidden.tool_calls, hidden.tools) == (None, None, Tools.UNOBSERVABLE)
    assert (row(None).path, row(None).tool_calls, row(None).retries) == (None, None, None)


def test_fields_by_name() -> None:
    """Any field may be set by its name; an unknown one is an error, not a silent nothing."""
    assert run([], weight=3).weight == 3
    assert row([], task="refund").task == "refund"
    assert call("search", 2, retry=True).start_ns == at(2)
    with pytest.raises((TypeError, ValueError), match="colour"):  # Python 3.13 calls it a TypeError
        run([], colour="red")


def test_rows_are_comparable() -> None:
    """Equal paths of different rows have equal codes, different ones do not."""
    one, same, another = row(["a", "b"], 1), row(["a", "b"], 2), row(["b", "a"], 3)

    assert one.path == same.path
    assert one.path != another.path
    assert one.retries == Retries(0, 0, None, 0, 0, 0)


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_recordings(tmp_path: Path, name: str) -> None:
    """Spans and evaluations are written one request a line, and read back as they were."""
    spans = [span(number, attributes={"k": (number,)}) for number in range(1, 8)]
    judged = [Evaluation("success", 1.0, None, at(1), trace_id(1), span_id(1), None)]
    path = write_otlp(tmp_path / name, spans, judged, batch=3)
    batches = list(read_file(path))

    assert [len(batch.spans) for batch in batches] == [3, 3, 1, 0]
    assert [s for batch in batches for s in batch.spans] == spans
    assert batches[-1].evaluations == judged


def test_gzip_is_packed(tmp_path: Path) -> None:
    """`.gz` files are really packed."""
    path = write_otlp(tmp_path / "runs.jsonl.gz", [span()])

    assert "resourceSpans" in json.loads(gzip.decompress(path.read_bytes()))


def test_every_public_name_is_there() -> None:
    """What the module says it offers, it has."""
    assert all(hasattr(testing, name) for name in testing.__all__)
