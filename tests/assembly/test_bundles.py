"""Bundles change nothing but the cost: what is gathered span by span is the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from otel_reliability.assembly.assembler import Assembler
from otel_reliability.assembly.bundles import Bundles
from otel_reliability.config import AssemblySettings, OutcomeSettings, Settings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    RawSpan,
    Session,
    Tokens,
    ToolFacts,
)
from otel_reliability.testing import agent, agent_span, model, other, span_id, tool, trace_id
from tests.assembly.rebuilding import Told, blocks_of, take
from tests.laws.arrival import Arrivals, schedules
from tests.laws.arrival import read as read_spans
from tests.laws.telemetry import cases

SETTINGS = Settings(
    assembly=AssemblySettings(linger=2.0, idle_timeout=20.0, reopen=60.0, remember=120.0), context_limits={"m*": 1_000}
)

Story = list[tuple[int, list[RunEvent]]]


class Gathered(Assembler):
    """An assembler that gathers every span as it comes."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._bundles = NoBundles(self._gathering, 10, 10, self.accounts, self._schedule_bundle)


class NoBundles(Bundles):
    """Nothing stays in a bundle."""

    def take(self, spans: Iterable[AgentSpan], now: float, gather: Callable[[AgentSpan, float], None]) -> None:
        for span in spans:
            gather(span, now)

    def opened(self, trace_id: bytes, span_id: bytes, parent_id: bytes | None, now: float) -> bool:
        return False


def told_of(
    assembler: Assembler, arrivals: Arrivals, opened: Iterable[Sequence[Any]] = (), *, in_blocks: bool = False
) -> tuple[Story, Any]:
    """What is told at each tick, and what became of the spans, when all of it has settled and is forgotten.

    `in_blocks`: spans that come together come by trace.
    """
    now, story = 0.0, Story()
    for span in opened:
        assembler.opened(span[0], span[1], span[2], now)
    steps = [*arrivals, *((5.0, list[Told]()) for _ in range(50))]
    for number, (seconds, told) in enumerate(steps):
        now += seconds
        assert not any(isinstance(one, RawSpan) for one in told)
        if in_blocks:
            assembler.add_all(blocks_of(one for one in told if isinstance(one, AgentSpan)), now)
        for one in told:
            if isinstance(one, Evaluation) or (isinstance(one, AgentSpan) and not in_blocks):
                take(assembler, one, now)
        events = assembler.tick(now)
        story.append((number, sorted(events, key=lambda event: (event.run.run_id, event.change.value))))
    events = assembler.close_all(CloseReason.SHUTDOWN, now)
    story.append((-1, sorted(events, key=lambda event: (event.run.run_id, event.change.value))))
    return story, +assembler.accounts


def holds(arrivals: Arrivals, opened: Sequence[Sequence[Any]] = (), settings: Settings = SETTINGS) -> None:
    """The same is told, at the same ticks, with bundles and without, span by span and in blocks."""
    for some in (arrivals, [(seconds, by_trace(told)) for seconds, told in arrivals]):
        expected, found = Gathered(settings), Assembler(settings)
        story, accounts = told_of(expected, some, opened)
        assert told_of(found, some, opened) == (story, accounts)
        assert found.levels == expected.levels
    adopted = Assembler(settings)
    assert told_of(adopted, some, opened, in_blocks=True) == (story, accounts)
    assert adopted.levels == expected.levels


def by_trace(told: Sequence[Any]) -> list[Any]:
    """Spans in the order in which blocks tell them, then judgements."""
    return [
        *blocks_of(one for one in told if isinstance(one, AgentSpan)),
        *(one for one in told if isinstance(one, Evaluation)),
    ]


@given(st.data())
def test_bundles_tell_what_gathering_tells(data: st.DataObject) -> None:
    """Whatever comes, in whatever order, with whatever pauses: the same runs change at the same ticks."""
    case = data.draw(cases(hostile=data.draw(st.booleans())))
    told = read_spans([*case.everything, *case.evaluations])
    opened = data.draw(st.lists(st.sampled_from(case.spans), max_size=3)) if case.spans else []
    holds(data.draw(schedules(told)), [(one.trace_id, one.span_id, one.parent_id) for one in opened])


@given(st.data())
def test_plain_runs_are_what_the_builder_builds(data: st.DataObject) -> None:
    """Runs of one agent and its calls, with all that can be said about them."""
    told = data.draw(plain_runs())
    settings = data.draw(
        st.sampled_from(
            (
                SETTINGS,
                Settings(assembly=AssemblySettings(parallel="as_started"), outcome=OutcomeSettings(fallback="status")),
            )
        )
    )
    holds([(0.0, told)], settings=settings)


@given(st.data())
def test_plain_runs_may_come_in_pieces(data: st.DataObject) -> None:
    """The same in any order and any batches."""
    spans = data.draw(plain_runs())
    holds(data.draw(schedules(spans)))


def test_most_plain_runs_take_the_short_way() -> None:
    """The property above is about something: at least a third of the generated runs is built from a bundle."""
    found: Counter[bool] = Counter()

    @settings(max_examples=150, phases=[Phase.generate], database=None, suppress_health_check=(HealthCheck.too_slow,))
    @given(plain_runs())
    def look(spans: list[AgentSpan]) -> None:
        assembler = Assembler(SETTINGS)
        told_of(assembler, [(0.0, spans)])
        found[not assembler.gathered] += 1

    look()

    assert found[True] > 0.3 * (found[True] + found[False]), found


_NAMES = st.sampled_from(("search", "book"))
_ARGUMENTS = st.sampled_from((None, b"a" * 16, b"b" * 16))
_NOTES = st.none() | st.builds(
    Notes,
    task_id=st.sampled_from((None, "t")),
    success=st.sampled_from((None, True, False)),
    confidence=st.sampled_from((None, 0.5)),
    cost=st.sampled_from((None, 0.25)),
    branches=st.sampled_from(((), (("a", "x"),), (("b", "y"),))),
    context_limit=st.sampled_from((None, 500)),
    run_key=st.none(),
)
_SESSIONS = st.none() | st.builds(Session, st.integers(0, 1), st.sampled_from(("s", "t")))
_JUDGED = st.just(()) | st.tuples(
    st.builds(
        Evaluation, st.sampled_from(("success", "tone")), st.sampled_from((0.0, 1.0)), st.none(), st.integers(1, 2)
    )
)


@st.composite
def plain_runs(draw: st.DrawFn) -> list[AgentSpan]:
    """The spans of one trace: an agent, and beneath it mostly model and tool calls; now and then something else."""
    top = draw(st.sampled_from((None, None, None, 90, 91)))
    facts = InvocationFacts(
        name=draw(st.sampled_from(("support", "support", "support", "support", None))),
        limit_reached=draw(st.sampled_from((False, False, False, True))),
        tokens=draw(st.sampled_from((None, None, Tokens(5, 5)))),
        expects_finish=draw(st.sampled_from((False,) * 9 + (True,))),
        hides_failure=draw(st.sampled_from((False,) * 9 + (True,))),
        emits_no_tools=draw(st.sampled_from((False,) * 9 + (True,))),
    )
    root = agent_span(Kind.AGENT, facts, 1, top, start=0.0, end=draw(st.sampled_from((3.0, 0.5))))
    root = root._replace(parent_remote=draw(st.sampled_from((None, True, False))), failed=draw(st.booleans()))
    spans = [root]
    above = [1, 1, 1]
    for number in range(2, 2 + draw(st.integers(0, 6))):
        spans.append(_beneath(draw, number, draw(st.sampled_from(above))))
        if spans[-1].kind is Kind.CHAIN or draw(st.integers(0, 15)) == 0:
            above.append(number)
    if top == 90 or draw(st.integers(0, 6)) == 0:
        spans.append(other(90, draw(st.sampled_from((None, 91))), start=0.0, end=4.0))
    if draw(st.integers(0, 9)) == 0:
        spans.append(draw(st.sampled_from(spans)))
    said = [
        one._replace(notes=draw(_NOTES), session=draw(_SESSIONS)) if draw(st.integers(0, 3)) == 0 else one
        for one in spans
    ]
    return [one._replace(evaluations=draw(_JUDGED)) if draw(st.integers(0, 9)) == 0 else one for one in said]


def _beneath(draw: st.DrawFn, number: int, parent: int) -> AgentSpan:
    start = draw(st.integers(0, 6)) / 4
    end = start + draw(st.sampled_from((0.0, 0.25, 0.25, 1.0)))
    what = draw(st.sampled_from(("tool", "tool", "tool", "model", "model", "model", "chain", "retrieval", "agent")))
    if what == "tool":
        call = Call(
            draw(_NAMES),
            draw(st.sampled_from((None, None, f"call{number}", "call"))),
            draw(_ARGUMENTS),
            draw(st.booleans()),
            draw(_ARGUMENTS),
        )
        calls = draw(st.sampled_from(((call,),) * 14 + ((), (call, call._replace(name="book")))))
        return agent_span(Kind.TOOL, ToolFacts(calls), number, parent, start=start, end=end)
    if what == "model":
        facts = ModelFacts(
            draw(st.sampled_from(("m", "n", None))),
            "m1",
            Tokens(draw(st.sampled_from((None, 100, 2_000))), draw(st.sampled_from((None, 10)))),
            asked_for_tools=draw(st.sampled_from((False, False, True))),
            cost=draw(st.sampled_from((None, 0.5))),
        )
        span = agent_span(Kind.MODEL, facts, number, parent, start=start, end=end)
        return span._replace(failed=draw(st.booleans()), scope=draw(st.sampled_from(("x",) * 7 + ("y",))))
    if what == "chain":
        return agent_span(Kind.CHAIN, InvocationFacts(), number, parent, start=start, end=end)
    if what == "retrieval" or draw(st.booleans()):
        return agent_span(Kind.RETRIEVAL, None, number, parent, start=start, end=end)
    return agent(number, parent, "billing", start=start, end=end)


# --- What a bundle has to notice --------------------------------------------------------------------------------------


RUN = (agent(1), model(2, 1, start=0.1, end=0.2), tool(3, 1, "search", start=0.3, end=0.4))

LATER: dict[str, Arrivals] = {
    "a step that outlasts its agent": [(0.0, [RUN[0], agent_span(Kind.RETRIEVAL, None, 4, 1, start=-1.0, end=9.0)])],
    "an agent that calls another": [(0.0, [*RUN, agent(4, 1, "billing"), tool(5, 4, "book"), tool(6, 5, "pay")])],
    "a late span of an agent called by another": [
        (0.0, [*RUN, agent(4, 1, "billing"), tool(5, 4, "book")]), (5.0, [model(6, 4)]), (100.0, [model(7, 4)]),
    ],
    "a judgement of an agent called by another": [
        (0.0, [*RUN, agent(4, 1, "billing"), tool(5, 4, "book")]),
        (5.0, [Evaluation("success", 1.0, None, 1, trace_id(1), span_id(4))]),
    ],
    "a judgement of settled agents": [
        (0.0, [*RUN, agent(4, 1, "billing"), tool(5, 4, "book")]),
        (100.0, [Evaluation("success", 1.0, None, 1, trace_id(1), span_id(4))]),
    ],
    "an agent below a circle": [(0.0, [*RUN, agent(4, 5, "billing"), tool(5, 4, "book")])],
    "a late tool call": [(0.0, RUN), (5.0, [tool(4, 1, "book", start=0.5)])],
    "the same span again": [(0.0, RUN), (1.0, RUN[:1]), (5.0, RUN), (90.0, RUN)],
    "another version of one": [(0.0, RUN), (5.0, [RUN[2]._replace(end_ns=RUN[2].end_ns + 1)])],
    "a second root": [(0.0, RUN), (5.0, [agent(7, called="billing")])],
    "a span of a settled run": [(0.0, RUN), (100.0, ()), (1.0, [tool(4, 1, "book")])],
    "a judgement": [(0.0, RUN), (5.0, [Evaluation("success", 1.0, None, 1, trace_id(1), span_id(1))])],
    "a judgement of a settled run": [(0.0, RUN), (100.0, ()), (0.0, [Evaluation("success", 1.0, None, 1, trace_id(1))])],
    "a judgement of a response": [
        (0.0, [*RUN, agent_span(Kind.MODEL, ModelFacts(response_id="r"), 5, 1)]),
        (5.0, [Evaluation("success", 1.0, None, 1, response_id="r")]),
    ],
    "a parent that comes late": [(0.0, [RUN[0]._replace(parent_id=span_id(9)), *RUN[1:]]), (9.0, [other(9)])],
    "a remote parent that comes late": [
        (0.0, [RUN[0]._replace(parent_id=span_id(9), parent_remote=True), *RUN[1:]]), (5.0, [other(9)]), (9.0, ()),
    ],
    "a parent that comes late with another child": [
        (0.0, [agent(5, 9)]), (25.0, [agent(6, 9, "billing"), other(9), agent(7, called="sales")]),
    ],
    "a parent, then the root, then a judgement": [
        (0.0, [tool(5, 9)]),
        (3.0, [other(9, 8), *RUN]),
        (0.0, [Evaluation("success", 1.0, None, 1, trace_id(1), span_id(1))]),
    ],
    "a root that comes late": [(0.0, RUN[1:]), (1.0, RUN[1:2]), (9.0, RUN[:1])],
    "a root that never comes": [(0.0, RUN[1:2]), (15.0, RUN[2:]), (10.0, ())],
    "another span beside a closed run": [(0.0, RUN), (5.0, [other(8, 2)]), (1.0, [other(8, 2), other(2)])],
    "a hop to the run": [(0.0, RUN), (5.0, [agent(5, called="far", trace=2)._replace(link=(trace_id(1), span_id(3)))])],
    "a hop to a settled run": [
        (0.0, RUN), (99.0, ()), (0.0, [tool(5, None, "far", trace=2)._replace(link=(trace_id(1), span_id(3)))]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("arrivals", LATER.values(), ids=LATER)
def test_what_does_not_fit_into_a_bundle_is_noticed(arrivals: Arrivals) -> None:
    """What comes after, or beside, is taken as if all had been gathered from the beginning."""
    holds(arrivals)


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_limit_of_spans_holds(limit: int) -> None:
    """A run of too many spans is closed at the same span."""
    holds([(0.0, RUN), (3.0, [tool(4, 1, "book")])], settings=Settings(assembly=AssemblySettings(span_limit=limit)))


def crowd() -> Arrivals:
    """Runs of one span to three beside one another, each with two other spans above nobody."""
    return [
        (1.0, [one._replace(trace_id=trace_id(trace)) for one in (*RUN[: 1 + trace % 3], other(20), other(21, 20))])
        for trace in range(1, 9)
    ]


@pytest.mark.parametrize("ceiling", [{"open_runs": 2}, {"other_spans": 2}, {"closed_ids": 5}])
def test_ceilings_hold(ceiling: dict[str, int]) -> None:
    """Above a ceiling the heaviest runs are closed, the first to have closed are final, and places and ids are forgotten."""
    holds(crowd(), settings=Settings(assembly=AssemblySettings(**ceiling)))  # pyright: ignore[reportArgumentType]  # test


@pytest.mark.parametrize("name", ["open_bytes", "reopenable_bytes"])
def test_ceilings_of_bytes_hold(name: str) -> None:
    """Bundles weigh less than what is gathered, so more of them fit in; no more than that."""
    assembler = Assembler(Settings(assembly=AssemblySettings(**{name: 2_000})))  # pyright: ignore[reportArgumentType]  # test
    told: list[RunEvent] = []
    now, most = 0.0, 0
    for seconds, spans in crowd():
        now += seconds
        for one in spans:
            assert not isinstance(one, RawSpan)
            take(assembler, one, now)
        told += assembler.tick(now)
        level, limit = assembler.levels[name]
        most = max(most, level)
        assert level <= limit
    told += assembler.close_all(CloseReason.SHUTDOWN, now)

    assert most > 1_000
    assert sum(event.change is RunChange.CLOSED for event in told) == 8
