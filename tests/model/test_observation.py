from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.change.signals import CODING_SIGNALS, SIGNALS
from otel_reliability.model.coding import CodingTotals
from otel_reliability.model.observation import (
    MAX_STEPS,
    Observation,
    counts_for_change,
    in_order,
    joined,
    observation_of,
)
from otel_reliability.model.run import ModelCall, Outcome
from otel_reliability.testing import at, call, run
from tests.change.build import SECOND, exchangeable, observation

MODEL_CALLS = (
    ModelCall("model", 1_000, 50, False, "agent", 0, 1),
    ModelCall("model", 3_000, 70, False, "agent", 0, 1),
    ModelCall("model", None, None, True, "agent", 0, 1),
)


def test_a_run_gives_its_numbers() -> None:
    calls = (call("search"), call("book", ok=False))
    facts = {
        "model_calls": MODEL_CALLS,
        "output_tokens": 130,
        "outcome": Outcome.FAILURE,
        "task_id": "t",
        "ended_in_error": True,
    }
    one = observation_of(run(("search", "book"), 1, tool_calls=calls, **facts))
    assert one == Observation(
        id="run-1",
        start_ns=at(100),
        end_ns=at(103),
        path=("search", "book"),
        calls=2,
        failed_calls=1,
        output_tokens=130,
        largest_input=3_000,
        failures=1,
        reply_tokens=120,
        replies=2,
        task="t",
        errors=1,
        tokens=130,
    )


def test_no_evidence_is_none() -> None:
    bare = observation_of(run(None, model_calls=MODEL_CALLS[2:]))
    assert {bare.path, bare.calls, bare.failed_calls, bare.output_tokens} == {None}
    assert {bare.largest_input, bare.failures} == {None}
    assert {name: signal.read(bare) for name, signal in SIGNALS.items()} == dict.fromkeys(SIGNALS)


def test_a_run_without_tool_calls_has_none_of_them() -> None:
    found = observation_of(run(()))
    assert (found.path, found.calls, found.failed_calls) == ((), 0, 0)


@pytest.mark.parametrize("facts", [{"nested": True}, {"incomplete": True}, {"condition": "fault"}])
def test_only_whole_undisturbed_runs_count(facts: dict[str, Any]) -> None:
    assert not counts_for_change(run((), 1, **facts))
    assert counts_for_change(run(()))


def test_a_session_sums_its_runs() -> None:
    later = observation(2, ("mail",), largest_input=9_000, failures=1, task="t", errors=1)
    earlier = observation(1, ("search", "read"), failures=None, task="t", failed_calls=2)
    whole = joined("session", [later, earlier])
    assert whole == Observation(
        id="session",
        start_ns=SECOND,
        end_ns=2 * SECOND,
        path=("search", "read", "mail"),
        calls=3,
        failed_calls=2,
        output_tokens=600,
        largest_input=9_000,
        failures=1,
        reply_tokens=600,
        replies=6,
        task="t",
        errors=1,
        prompts=2,
    )


def test_a_session_sums_what_its_prompts_did_to_files() -> None:
    one = replace(observation(1), tokens=50, coding=CodingTotals(1, edits=2), cancelled=1)
    two = replace(observation(2), tokens=70)
    whole = joined("session", [one, two])
    assert (whole.tokens, whole.prompts, whole.cancelled) == (120, 2, 1)
    assert whole.coding == CodingTotals(1, edits=2)
    assert CODING_SIGNALS["edits_per_prompt"].read(whole) == 1.0
    assert CODING_SIGNALS["cancelled_share"].read(whole) == 0.5


def test_a_session_lacks_what_one_of_its_runs_lacks() -> None:
    """A sum of some of the turns would look like a change: it is absent. Outcomes are summed over
    those known.
    """
    whole = joined(
        "session",
        [observation(1), observation(2, None, calls=None, output_tokens=None, failures=None)],
    )
    assert (whole.path, whole.calls, whole.output_tokens, whole.failures) == (None, None, None, 0)


def test_a_session_of_several_tasks_has_none() -> None:
    assert joined("session", [observation(1, task="a"), observation(2, task="b")]).task is None


@given(st.randoms(use_true_random=False))
def test_a_session_of_one_run_is_that_run(dice: random.Random) -> None:
    (only,) = exchangeable(1, seed=dice.randrange(10**6))
    assert joined("session", [only]) == replace(only, id="session")


def test_paths_are_bounded() -> None:
    long = observation_of(run(("a",) * 5_000))
    assert len(long.path or ()) == MAX_STEPS
    assert len(joined("session", [long, long]).path or ()) == MAX_STEPS
    assert len(joined("session", [replace(long, path=("a",) * 5_000)]).path or ()) == MAX_STEPS


@given(st.randoms(use_true_random=False))
def test_the_order_in_which_runs_arrived_does_not_matter(dice: random.Random) -> None:
    observations = exchangeable(8)
    shuffled = dice.sample(observations, len(observations))
    assert joined("session", shuffled) == joined("session", observations)
    assert in_order(shuffled) == observations
