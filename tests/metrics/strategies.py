"""Rows for property tests: small alphabets, so that equal paths, tasks and ends are common."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from otel_reliability.model.coding import CodingTotals
from otel_reliability.model.row import Retries, Row
from otel_reliability.model.run import Outcome
from otel_reliability.testing import path_of

PATHS = ["", "a", "a b", "b a", "a b a", "a b c d", "d c b a", "a a a a a a a a"]
EFFECTS: list[tuple[str, bytes | None]] = [
    ("a", b"1"),
    ("a", b"2"),
    ("b", b"1"),
    ("b", b"2"),
    ("b", None),
    ("c", b"1"),
]
SHARES = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.95, 1.0]) | st.floats(0, 1)


@st.composite
def retries(draw: st.DrawFn) -> Retries | None:
    if draw(st.integers(0, 3)) == 0:
        return None
    chain = draw(st.sampled_from([0, 0, 1, 2, 3, 6]))
    repeats = draw(st.sampled_from([0, 0, 1, 4]))
    looped = (draw(st.integers(0, 10**6)), draw(st.integers(0, 10**12))) if repeats else (0, 0)
    if not chain:
        return Retries(0, 0, None, 0, 0, repeats, *looped)
    tokens = draw(st.integers(0, 10**6))
    cost = draw(st.integers(0, 10**12))
    return Retries(chain + draw(st.integers(0, 3)), chain, "a", tokens, cost, repeats, *looped)


@st.composite
def coding(draw: st.DrawFn) -> CodingTotals | None:
    """What a prompt did to files."""
    if draw(st.booleans()):
        return None
    edits = draw(st.sampled_from([0, 0, 1, 2, 5]))
    failed = draw(st.integers(0, edits))
    testable = int(failed < edits and draw(st.booleans()))
    return CodingTotals(
        prompts=1,
        edits=edits,
        failed_edits=failed,
        editing_prompts=int(edits > 0),
        reads_before_edit=draw(st.integers(0, 9)) if edits else 0,
        testable_prompts=testable,
        tested_prompts=int(testable and draw(st.booleans())),
    )


def fields() -> st.SearchStrategy[dict[str, Any]]:
    """All of a row but its place among the others."""
    return st.fixed_dictionaries(
        {
            "path": st.none() | st.sampled_from(PATHS).map(path_of),
            "task": st.sampled_from([None, "x", "x", "y", "z"]),
            "input_class": st.sampled_from([None, None, "k"]),
            "condition": st.sampled_from(
                ["baseline", "baseline", "baseline", "fault", "prompt", "structure"]
            ),
            "branches": st.sampled_from(
                [(), (), (("b", "1"),), (("b", "2"),), (("b", "1"), ("c", "1"))]
            ),
            "calls": st.none() | st.tuples(st.integers(0, 9), st.integers(0, 3)),
            "retries": retries(),
            "pressure": st.none() | SHARES,
            "model_calls": st.integers(0, 5),
            "tokens": st.none() | st.integers(0, 10**6),
            "latency_ns": st.none() | st.integers(0, 10**12),
            "outcome": st.sampled_from(list(Outcome)),
            "ended_in_error": st.sampled_from([None, False, False, True]),
            "confidence": st.none() | SHARES,
            "cost": st.none() | st.floats(0, 1e12),
            "violations": st.sampled_from(
                [None, None, (), (("pii", "low"),), (("pii", "high"), ("law", "odd"))]
            ),
            "session_id": st.sampled_from([None, "s"]),
            "signals": st.just(()),
            "effects": st.none() | st.frozensets(st.sampled_from(EFFECTS), max_size=4),
            "weight": st.integers(1, 5),
            "arguments_known": st.booleans(),
            "step_growth": st.none() | st.floats(-1, 1),
            "coding": coding(),
            "input_tokens": st.sampled_from([0, 7, 10**6]),
            "cached_tokens": SHARES,
        }
    ).map(_consistent)


def _consistent(drawn: dict[str, Any]) -> dict[str, Any]:
    """Calls and failed calls are known together, and retries and repeats are calls after a first
    one; growth is known where the pressure is; cached tokens are some of those given.
    """
    given = dict(drawn)
    calls, failed = given.pop("calls") or (None, None)
    again = given["retries"]
    if calls is not None and again is not None and again.number + again.repeats:
        calls = max(calls, again.number + again.repeats + 1)
    made = {**given, "tool_calls": calls, "failed_calls": failed and min(failed, calls)}
    made["cached_tokens"] = int(given["cached_tokens"] * given["input_tokens"])
    return made if made["pressure"] is not None else {**made, "step_growth": None}


def rows(least: int = 0, most: int = 16) -> st.SearchStrategy[list[Row]]:
    """Rows in the order of their runs' ends, some of which end together."""
    steps = st.lists(st.tuples(st.integers(0, 2), fields()), min_size=least, max_size=most)
    return steps.map(_placed)


def _placed(steps: list[tuple[int, dict[str, Any]]]) -> list[Row]:
    end = 0
    placed = list[Row]()
    for at, (later, given) in enumerate(steps):
        end += later * 10**9
        placed.append(
            Row(end_ns=end, run_id=f"{at:04}", start_ns=max(0, end - at * 10**8), **given)
        )
    return placed
