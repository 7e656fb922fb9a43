"""The quick ways to a run, compiled or not, give what `Builder` gives of the same spans, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from otel_reliability.assembly.build import Builder
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.compiled import NATIVE
from otel_reliability.assembly.gathering import place_of
from otel_reliability.assembly.trees import tree_of
from otel_reliability.assembly.unit import Place
from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    Facts,
    InvocationFacts,
    ModelFacts,
    Notes,
    Resource,
    Session,
    SpanId,
    Tokens,
    ToolFacts,
)
from otel_reliability.testing import other, span_id
from tests.assembly.test_bundles import SETTINGS, plain_runs
from tests.assembly.test_compiled import AS_STARTED, BY_STATUS, bundle_of, usual_runs

UNDER = (SETTINGS, BY_STATUS, AS_STARTED, replace(SETTINGS, context_limits={"m1": 50, "m": 20}))

_TOKENS = st.none() | st.integers(0, 60)
_HASHES = st.sampled_from((None, b"a", b"b"))
_EVALUATIONS = st.builds(
    Evaluation,
    st.sampled_from(("success", "helpful", "constraint.refund", "loop_detection")),
    st.sampled_from((None, 0.0, 0.4, 1.0)),
    st.sampled_from((None, "pass", "high")),
    st.integers(0, 2),
)
_NOTES = st.builds(
    Notes,
    task_id=st.sampled_from((None, "t1", "t2")),
    trial=st.sampled_from((None, 0, 1)),
    success=st.sampled_from((None, None, True, False)),
    reward=st.sampled_from((None, 0.0, 0.5, 1.0)),
    confidence=st.sampled_from((None, 0.2, 0.9)),
    cost=st.sampled_from((None, 0.0, 0.5)),
    condition=st.sampled_from((None, "baseline", "fault")),
    violations=st.sampled_from((None, (), (("refund", "low"),))),
    branches=st.sampled_from(((), (("route", "x"),))),
    input_class=st.sampled_from((None, "short")),
    context_limit=st.sampled_from((None, 10, 100)),
    run_key=st.sampled_from((None, "ab" * 8)),
)
_SAID: st.SearchStrategy[Mapping[str, Any]] = st.one_of(
    st.fixed_dictionaries({"notes": _NOTES}),
    st.fixed_dictionaries({"evaluations": st.lists(_EVALUATIONS, max_size=2).map(tuple)}),
    st.fixed_dictionaries({"session": st.none() | st.builds(Session, st.integers(0, 2), st.sampled_from("st"))}),
    st.fixed_dictionaries({"scope": st.sampled_from(("x", "y", "traceloop"))}),
    st.fixed_dictionaries({"threshold": st.sampled_from((None, 1 << 55, 3 << 54))}),
    st.fixed_dictionaries({"resource": st.just(Resource("shops", "shop", "prod"))}),
    st.fixed_dictionaries({"parent_remote": st.sampled_from((None, True, False))}),
    st.fixed_dictionaries({"parent_id": st.integers(1, 9).map(span_id)}),
    st.fixed_dictionaries({"failed": st.booleans()}),
)
"""What any span may say beside what it is."""
_INVOCATION = st.fixed_dictionaries(
    {},
    optional={
        "weak": st.booleans(),
        "fallback_name": st.just("Support"),
        "agent_if_root": st.booleans(),
        "tokens": st.builds(Tokens, _TOKENS, _TOKENS),
        "limit_reached": st.booleans(),
        "call": st.just(Call("ask", "call2", b"a")),
        "emits_no_tools": st.booleans(),
        "manages": st.just(("billing",)),
        "called_as": st.just("desk"),
    },
)
_MODEL = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from((None, "m", "m1", "n")),
        "request_model": st.sampled_from((None, "m1", "n")),
        "tokens": st.builds(Tokens, _TOKENS, _TOKENS),
        "asked_for_tools": st.booleans(),
        "calls": st.just((Call("search", "call2", b"a"),)),
        "context_limit": st.just(40),
        "cost": st.sampled_from((0.1, 0.25)),
        "response_id": st.just("r1"),
    },
)
_CALL = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(("search", "pay", None)),
        "call_id": st.sampled_from((None, "call2", "call3")),
        "arguments": _HASHES,
        "failed": st.booleans(),
        "result": _HASHES,
        "effect": _HASHES,
    },
)


class Told(NamedTuple):
    """The spans of a trace, each once, and where its other spans stand."""

    spans: list[AgentSpan]
    places: dict[SpanId, Place]

    def bundle(self) -> Bundle:
        """As they lie there until they are a run."""
        bundle = bundle_of(self.spans)
        if self.places:
            bundle.places, bundle.is_plain = self.places, False
        return bundle


@st.composite
def traces(draw: st.DrawFn) -> Told:
    """Usual traces and plain ones, now and then with spans that say or do something else."""
    spans = draw(usual_runs() | plain_runs())
    seldom = draw(st.sampled_from((0, 5, 15, 15)))
    told: dict[SpanId, AgentSpan] = {}
    for span in spans:
        one = span._replace(trace_id=spans[0].trace_id)
        if seldom and draw(st.integers(0, seldom)) == 0:
            one = one._replace(**draw(_SAID))
        if seldom and draw(st.integers(0, seldom)) == 0:
            one = one._replace(facts=_other_facts(draw, one.facts))
        told[one.span_id] = one
    if not seldom or draw(st.booleans()):
        return Told(list(told.values()), {})
    places = {span_id(number): _place(draw, number) for number in (90, 91) if span_id(number) not in told}
    moved = [one._replace(parent_id=span_id(90)) if draw(st.integers(0, 9)) == 0 else one for one in told.values()]
    return Told(moved, places)


def _other_facts(draw: st.DrawFn, facts: Facts | None) -> Facts | None:
    if isinstance(facts, InvocationFacts):
        return facts._replace(**draw(_INVOCATION))
    if isinstance(facts, ModelFacts):
        return facts._replace(**draw(_MODEL))
    if isinstance(facts, ToolFacts) and facts.calls:
        return facts._replace(calls=(facts.calls[0]._replace(**draw(_CALL)),))
    return facts


def _place(draw: st.DrawFn, number: int) -> Place:
    above = other(number, draw(st.sampled_from((None, 1, 2, 91, 99))))
    return place_of(
        above._replace(
            parent_remote=draw(st.sampled_from((None, True, False))),
            session=draw(st.sampled_from((None, None, None, Session(0, "q")))),
        )
    )


def compare(told: Told, under: Settings) -> str:
    """Hold both quick ways to the slow one. Which of them gave a run."""
    bundle = told.bundle()
    builder, plain = Builder(under), Builder(under).simple
    plain._caller = plain.maker = None
    run = builder.simple.build(bundle, CloseReason.ROOT)
    assert plain.build(bundle, CloseReason.ROOT) == run
    if run is None:
        return "neither"

    tree = tree_of(bundle)
    assert tree is not None
    built = builder.build(tree.unit)
    (expected,) = built.runs
    for name, left, right in zip(Run._fields, run, expected._replace(closed_by=CloseReason.ROOT), strict=True):
        assert (name, type(left), left) == (name, type(right), right)
    assert list(run.tool_calls or ()) == list(expected.tool_calls or ())
    assert list(run.model_calls) == list(expected.model_calls)
    assert (built.used, built.loose) == (bundle.count, 0)
    return "simple" if builder.simple.at_once(bundle, CloseReason.ROOT) is None else "at once"


@given(traces(), st.sampled_from(UNDER))
def test_quick_ways_give_what_the_slow_one_gives(told: Told, under: Settings) -> None:
    """Notes, judgements, several scopes and sessions, containers, retrievals, failed and overlapping calls, unknown arguments,
    limits, thresholds, parents elsewhere, and other spans in between.
    """
    compare(told, under)


def test_both_ways_are_taken_often() -> None:
    """The property above is about something: some runs are built by either, whatever their spans say."""
    found: Counter[str] = Counter()

    @settings(
        max_examples=300,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=(HealthCheck.too_slow,),
    )
    @given(traces())
    def look(told: Told) -> None:
        found[compare(told, SETTINGS)] += 1

    look()

    assert NATIVE is None or found["at once"] > 0.03 * found.total(), found
    assert found["simple"] > 0.05 * found.total(), found
