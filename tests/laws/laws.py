"""The laws of assembly, as functions: a test holds the engine to each, another holds each to a
planted bug.

Each takes hypothesis' `data`, draws what it needs, and asserts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import AssemblySettings, LimitSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan, Evaluation, RawSpan, TraceId
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import FakeClock, write_otlp
from tests.laws.arrival import (
    READER,
    REOPEN,
    SETTINGS,
    Outcome,
    after,
    at_once,
    flushed,
    read,
    schedules,
    tick_a_little,
    tick_fully,
    waited,
)
from tests.laws.telemetry import Case, cases, kind_of

LATE = REOPEN + 1_000.0
"""Seconds after which all runs are final; their ids are remembered longer."""


def same(left: Outcome, right: Outcome) -> None:
    """The same runs, and the same readings of every window."""
    assert left.runs.keys() == right.runs.keys()
    for run_id, run in left.runs.items():
        assert run == right.runs[run_id]
    assert left.readings == right.readings


def all_final(outcome: Outcome) -> None:
    """Every run is final, as it was told last: counters and histograms have recorded it."""
    assert outcome.final == outcome.runs


def all_of(case: Case) -> list[RawSpan | Evaluation]:
    return [*case.everything, *case.evaluations]


# --- The laws -------------------------------------------------------------------------------------


def order_and_batches(data: st.DataObject, *, hostile: bool = False) -> None:
    """Neither the order, nor the batches, nor the pauses between them, nor how much is done in a
    tick, nor how the end comes, change runs or readings.
    """
    case = data.draw(cases(hostile=hostile))
    told = read(case.everything)
    judged = read(case.evaluations)
    expected = after(at_once([*told, *judged]))
    arrivals = data.draw(schedules([*told, *judged]))
    if data.draw(st.booleans()):
        arrivals = [*data.draw(schedules(told)), (3.0, judged)]
    tick = data.draw(st.sampled_from((tick_fully, tick_a_little)))
    found = after(arrivals, tick=tick, end=data.draw(st.sampled_from((flushed, waited))))

    same(expected, found)
    all_final(expected)
    all_final(found)


def duplication(data: st.DataObject) -> None:
    """Spans that come again, before their run is final or after, change nothing and are counted."""
    told = read(data.draw(cases()).everything)
    again = data.draw(st.lists(st.sampled_from(told), max_size=10)) if told else []
    later = data.draw(st.lists(st.sampled_from(told), max_size=10)) if told else []
    expected = after(at_once(told))
    found = after(
        [*data.draw(schedules([*told, *again])), *((5.0, ()) for _ in range(40)), (0.0, later)]
    )

    same(expected, found)
    assert found.accounts.get(("duplicate", ""), 0) == expected.accounts.get(
        ("duplicate", ""), 0
    ) + len(again) + len(later)


def apart(data: st.DataObject) -> None:
    """Telemetry of other traces, with the same span ids, between these or long after, leaves the
    runs of these alone; but for tool calls without an agent, which concern the agents of their
    service (tests/assembly/test_strays.py), and for ids of calls and responses, which are one
    trace's alone here: a run that repeats those of another trace is a replay
    (tests/assembly/test_replayed_runs.py).
    """
    one = read(all_of(data.draw(cases(traces=2))))
    two = read(all_of(data.draw(cases(first_trace=51, traces=2))))
    expected = {
        **after(at_once(one), whole_services=False).runs,
        **after(at_once(two), whole_services=False).runs,
    }

    together = after(data.draw(schedules([*one, *two])), whole_services=False)
    in_turn = after([(0.0, one), *((5.0, ()) for _ in range(40)), (0.0, two)], whole_services=False)

    assert together.runs == expected
    assert in_turn.runs == expected
    same(together, in_turn)


def files(data: st.DataObject) -> None:
    """A file gives the same in any order of its spans, and the same as the spans by themselves."""
    case = data.draw(cases())
    lines = data.draw(st.permutations(case.everything))
    expected = after(at_once(read(all_of(case))))

    with tempfile.TemporaryDirectory() as folder:
        path = write_otlp(
            Path(folder) / "spans.jsonl",
            lines,
            case.evaluations,
            batch=data.draw(st.sampled_from((1, 7))),
        )
        batches = list(read_file(path))
    spans = [span for batch in batches for span in batch.spans]
    evaluations = [evaluation for batch in batches for evaluation in batch.evaluations]

    assert len(spans) == len(lines)
    same(expected, after(at_once(read([*spans, *evaluations]))))


def completeness(data: st.DataObject, *, hostile: bool = False) -> None:
    """A trace that is closed, final and forgotten as soon as all that names it is here gives what
    it gives at the end.
    """
    case = data.draw(cases(hostile=hostile))
    told = read([*case.everything, *(one for one in case.evaluations if one.trace_id is not None)])
    told += data.draw(st.lists(st.sampled_from(told), max_size=5)) if told else []
    batches = [(0.0, batch) for _, batch in data.draw(schedules(told))]
    linked = {
        ref[0]
        for known in case.everything
        for link in known.links
        for ref in (link, (known.trace_id,))
    }
    last = {one.trace_id: number for number, (_, batch) in enumerate(batches) for one in batch}
    complete: dict[int, list[TraceId]] = {}
    for trace_id, number in last.items():
        if trace_id is not None and trace_id not in linked:
            complete.setdefault(number, []).append(trace_id)
    expected = after(batches)
    found = after(batches, complete=complete)

    same(expected, found)
    all_final(found)
    assert found.accounts == expected.accounts


ROOTS = ("agent", "invoke_workflow")
"""Kinds of generated spans that complete a run, however late."""


def lateness(data: st.DataObject) -> None:
    """What comes to a run after it is final is counted, opens no run of its own,
    and changes none. (A late root of steps that came in time completes their run.)
    """
    spans = data.draw(cases()).spans
    below = [
        known
        for known in spans
        if below_agent(known, spans, ())
        and not (kind_of(known) in ROOTS and any(one.parent_id == known.span_id for one in spans))
    ]
    chosen = (
        data.draw(st.lists(st.sampled_from(below), min_size=1, max_size=4))
        if below
        else list[RawSpan]()
    )
    late = [known for known in spans if known in chosen and below_agent(known, spans, chosen)]
    punctual = read(known for known in spans if known not in late)
    before = after(at_once(punctual), end=waited)
    found = after([(0.0, punctual), *((5.0, ()) for _ in range(40)), (0.0, read(late))], end=waited)

    assert found.runs == before.runs
    assert sum(found.accounts.values()) == 2 * len(spans)


def below_agent(known: RawSpan, spans: Sequence[RawSpan], without: Container[RawSpan]) -> bool:
    """Whether an agent that is there stands above a span."""
    here = {(one.trace_id, one.span_id): one for one in spans}
    above = known
    while above.parent_id is not None and (above.trace_id, above.parent_id) in here:
        above = here[above.trace_id, above.parent_id]
        if kind_of(above) == "agent" and above not in without:
            return True
    return False


def accounting(data: st.DataObject) -> None:
    """Every span received is used, other, late, duplicate, malformed or refused:
    once, by reason.
    """
    case = data.draw(cases(hostile=True))
    settings = replace(
        SETTINGS,
        limits=replace(SETTINGS.limits, span_limit=data.draw(st.sampled_from((4, 10_000)))),
    )
    again = data.draw(st.lists(st.sampled_from(case.everything), max_size=5)) if case.spans else []
    told = read([*case.everything, *again])
    order = data.draw(st.permutations(told))
    clock = FakeClock()
    engine = Engine(settings, clock=clock, wall=clock.wall)
    lost = data.draw(st.integers(0, 3))
    engine.count("malformed", "a reason", lost)
    while order:
        size = data.draw(st.sampled_from((1, 5, 30)))
        engine.receive([span for span in order[:size] if isinstance(span, AgentSpan)])
        order = order[size:]
        clock.advance(data.draw(st.sampled_from((0.0, 3.0, 30.0, 100.0, 2_000.0))))
        engine.tick()
    engine.flush(CloseReason.END_OF_INPUT)

    accounts = dict(engine.accounts)
    assert accounts.pop(("received", ""), 0) == len(told) + lost == sum(accounts.values())
    assert min(accounts.values(), default=0) >= 0
    assert {what for what, _ in accounts} <= {
        "used",
        "other",
        "late",
        "duplicate",
        "malformed",
        "refused",
    }


TIGHT = replace(
    SETTINGS,
    assembly=AssemblySettings(idle_timeout=20.0),
    limits=LimitSettings(
        span_limit=8,
        open_runs=4,
        open_bytes=12_000,
        reopenable_bytes=8_000,
        closed_ids=20,
        other_spans=6,
    ),
)
"""Limits that a few runs hit."""


def limits(data: st.DataObject) -> None:
    """Whatever comes, and however fast, nothing grows beyond its limit, and runs are still told in
    order.
    """
    told = read(data.draw(cases(hostile=data.draw(st.booleans()))).everything)
    clock = FakeClock()
    engine = Engine(TIGHT, clock=clock, wall=clock.wall, reader=READER)
    for pause, batch in data.draw(schedules(told)):
        clock.advance(pause)
        engine.receive(span for span in batch if not isinstance(span, Evaluation))
        engine.tick()
        within_limits(engine)
    waited(engine, clock)
    within_limits(engine)
    assert engine.open_runs == 0
    assert sum(engine.accounts.values()) == 2 * len(told)


def within_limits(engine: Engine) -> None:
    levels: Iterable[tuple[str, int | None, int]] = (
        (one.name, one.used, one.limit) for one in engine.limits()
    )
    over: Sequence[tuple[str, int, int]] = [
        (name, used, limit) for name, used, limit in levels if used is not None and used > limit
    ]
    assert over == []
