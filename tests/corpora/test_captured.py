"""Every capture of a real framework against what its program knew."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from otel_reliability.model.run import Tools
from tests.corpora.compare import FIELDS, Matched, match
from tests.corpora.known import EXCEPTIONS, NOT_HELD, RAW, every_agent_capture, is_held, misses
from tests.corpora.recordings import ALL_CAPTURES, MADE_CAPTURES, captured, rebuilt_capture, truth


def matched(capture: str) -> Matched:
    return match(truth(capture), rebuilt_capture(capture).tops)


@every_agent_capture
def test_every_run_is_found_once_and_none_is_invented(capture: str) -> None:
    found = matched(capture)

    assert [true.id for true, run in found.pairs if run is None] == []
    assert [run.run_id for run in found.ghosts] == []
    for true, run in found.pairs:
        assert run is not None
        assert run.trace_id.hex() in true.traces, true.id


@pytest.mark.parametrize("capture", sorted(RAW))
def test_where_no_agent_is_there_is_no_run(capture: str) -> None:
    """Model loops without an agent, and a tool server's own spans: no ghost, and every span
    accounted for.
    """
    found = rebuilt_capture(capture)

    assert found.runs == ()
    assert found.accounts["other", "no_agent"] + found.accounts["other", "no_convention"] == len(
        captured(capture)
    )


@pytest.mark.parametrize("field", FIELDS)
@every_agent_capture
def test_a_field_is_exact_but_for_what_is_known(capture: str, field: str) -> None:
    known = [run for (name, run, excepted) in EXCEPTIONS if (name, excepted) == (capture, field)]

    assert sorted(misses(truth(capture), field, matched(capture).pairs)) == sorted(known)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_exact_in_98_of_100_runs(field: str) -> None:
    held = exact = 0
    for capture in ALL_CAPTURES:
        if capture not in RAW:
            pairs = matched(capture).pairs
            concerned = sum(is_held(truth(capture), field, true) for true, _ in pairs)
            held = held + concerned
            exact = exact + concerned - len(misses(truth(capture), field, pairs))

    assert exact / held >= 0.98


@every_agent_capture
def test_what_a_capture_does_not_hold_is_not_claimed(capture: str) -> None:
    """Where nothing tells the tools, the tokens or the session, there is None, never an empty path
    or a zero.
    """
    for true, run in matched(capture).pairs:
        assert run is not None
        if (capture, "path") in NOT_HELD:
            assert (run.path, run.tools) == (None, Tools.UNOBSERVABLE), true.id
        if (capture, "tokens") in NOT_HELD:
            assert (run.input_tokens, run.output_tokens) == (None, None), true.id


@every_agent_capture
def test_no_session_joins_what_belongs_apart(capture: str) -> None:
    """Some instrumentations invent a conversation id a run; none may join runs of different
    conversations.
    """
    joined: dict[str, set[str]] = defaultdict(set)
    for true, run in matched(capture).pairs:
        if run is not None and run.session_id is not None:
            joined[run.session_id].add(true.session or true.id)

    assert {session: runs for session, runs in joined.items() if len(runs) > 1} == {}


@pytest.mark.parametrize(
    ("capture", "names"),
    [
        (
            "google_adk-native",
            {"billing_agent", "finder", "checks", "policy_agent", "kb_agent", "refunder"},
        ),
        *[(capture, {"billing"}) for capture in MADE_CAPTURES],
        ("langgraph-openinference", {"billing_agent"}),
        ("pydantic_ai-native", {"billing_agent"}),
        ("openai_agents-logfire", {"billing_agent"}),
        ("smolagents-openinference", {"billing_agent"}),
        ("smolagents117-openinference", {"billing_agent"}),
        ("vercel_ai-telemetry", {"billing_agent"}),
    ],
)
def test_sub_agents_have_runs_of_their_own(capture: str, names: set[str]) -> None:
    runs = rebuilt_capture(capture).runs
    nested = [run for run in runs if run.nested]
    above = {run.trace_id: Counter(run.path or ()) for run in runs if not run.nested}

    assert {run.key.agent for run in nested} == names
    assert all(Counter(run.path or ()) <= above[run.trace_id] for run in nested)
