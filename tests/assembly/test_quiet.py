"""Traces of which nothing comes any more: compiled, they are what they are in Python."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_reliability.assembly.quiet import NATIVE, PlainPasts, PlainQuiet
from otel_reliability.assembly.quiet import Pasts as OurPasts
from otel_reliability.assembly.quiet import Quiet as OurQuiet

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")
NO: Any = None


def trace(dice: Random) -> bytes:
    """The id of one of some traces, most of the usual length."""
    size = dice.choice((16, 16, 16, 0, 7, 300))
    return bytes([dice.randrange(40)]) * size


def past(dice: Random) -> Any:
    """What is remembered of one, most often what is usual."""
    agent = dice.choice(("agent", "agent", "\u0141", "", ("one", "two"), ()))
    ids = dice.choice((b"", b"i" * 8, b"i" * 8 * dice.randrange(40), (b"odd", b"")))
    return (agent, ids, dice.choice((None, None, None, {b"i": None})), dice.choice((None, None, None, {b"o": None})))


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_quiet_traces_stand_in_order(seed: int) -> None:
    """Whatever becomes quiet, and is so no more, and however many are due."""
    dice, ours, oracle = Random(seed), OurQuiet(), PlainQuiet()
    for at in range(dice.choice((20, 500))):
        trace_id, chance = trace(dice), dice.random()
        if chance < 0.6:
            ours[trace_id] = oracle[trace_id] = dice.choice((float(at), at - 3.0))
        elif chance < 0.8:
            assert ours.pop(trace_id, NO) == oracle.pop(trace_id, NO)
        elif chance < 0.9:
            due = ours.due(at - 10.0)
            assert due == oracle.due(at - 10.0)
            ours.drop(due)
            oracle.drop(due)
        elif oracle:
            assert next(iter(ours)) == next(iter(oracle))
            ours.drop([next(iter(ours)), trace_id])
            oracle.drop([next(iter(oracle)), trace_id])
        if chance > 0.99:
            ours = copy.deepcopy(ours) if dice.random() < 0.5 else pickle.loads(pickle.dumps(ours))
        assert (len(ours), trace_id in ours, bool(ours)) == (len(oracle), trace_id in oracle, bool(oracle))
    assert list(ours.items()) == list(oracle.items())
    assert ours.due(1e9) == list(oracle)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_what_is_remembered_is_what_was_kept(seed: int) -> None:
    """Also where it is replaced by something larger, and where many traces are forgotten together."""
    dice, ours, oracle = Random(seed), OurPasts(), PlainPasts()
    for _ in range(dice.choice((20, 500))):
        trace_id, chance = trace(dice), dice.random()
        if chance < 0.6:
            ours[trace_id] = oracle[trace_id] = past(dice)
        elif chance < 0.8:
            assert ours.pop(trace_id, NO) == oracle.pop(trace_id, NO)
        elif chance < 0.9:
            traces = list({trace(dice) for _ in range(5)})
            number, others = ours.forget(traces)
            expected, left = oracle.forget(traces)
            for one in others:
                found = ours.pop(one, NO)
                number += 0 if one in left or found is None else len(found[1]) // 8
            assert number == expected
            for one in left:
                oracle.pop(one, None)
        if chance > 0.99:
            ours = copy.deepcopy(ours) if dice.random() < 0.5 else pickle.loads(pickle.dumps(ours))
        assert (len(ours), trace_id in ours) == (len(oracle), trace_id in oracle)
        assert repr(ours.get(trace_id)) == repr(oracle.get(trace_id))
    assert sorted(map(repr, ours.items())) == sorted(map(repr, oracle.items()))


def test_what_is_not_there_cannot_be_taken() -> None:
    """As of a dictionary."""
    for one in (OurQuiet(), OurPasts()):
        with pytest.raises(KeyError):
            one.pop(b"trace")
        with pytest.raises(KeyError):
            one[b"trace"]


def test_usual_traces_are_forgotten_together() -> None:
    """Else nothing would be compared."""
    pasts = OurPasts()
    pasts[b"one"], pasts[b"two"] = ("agent", b"i" * 16, None, None), ("agent", b"i" * 24, None, None)
    pasts[b"odd"] = ("agent", (b"i",), None, None)
    assert pasts.forget([b"one", b"odd", b"none", b"two"]) == (5, [b"odd", b"none"])
    assert list(pasts) == [b"odd"]


def test_nothing_leaks() -> None:
    """The names of agents, and what is held as it is."""
    agent, odd = f"agent {gc.isenabled()}", (gc.isenabled(),)
    before = sys.getrefcount(agent), sys.getrefcount(odd)
    pasts: Any = OurPasts()
    for at in range(300):
        trace_id = bytes([at % 50]) * 16
        pasts[trace_id] = odd if at % 3 == 0 else (agent, b"i" * 8 * (at % 5), None, None)
        if at % 7 == 0:
            pasts.pop(trace_id, None)
        if at % 11 == 0:
            pasts.forget([trace_id, bytes([at % 13]) * 16])
    del pasts
    gc.collect()
    assert (sys.getrefcount(agent), sys.getrefcount(odd)) == before


def test_room_is_used_anew() -> None:
    """Of a hundred thousand traces a hundred are remembered at a time."""
    quiet, pasts = OurQuiet(), OurPasts()
    for at in range(100_000):
        trace_id = at.to_bytes(16, "big")
        quiet[trace_id], pasts[trace_id] = float(at), ("agent", b"i" * 80, None, None)
        due = quiet.due(at - 100.0)
        pasts.forget(due)
        quiet.drop(due)
    assert (len(quiet), len(pasts)) == (100, 100)
    assert sys.getsizeof(quiet) + sys.getsizeof(pasts) < 100 * 1_000


@pytest.mark.parametrize("trace_id", [1, None, "trace", bytearray(b"trace")])
def test_what_is_no_trace_is_refused(trace_id: Any) -> None:
    """Ids are bytes."""
    for one in (OurQuiet(), OurPasts()):
        with pytest.raises(TypeError):
            trace_id in one  # noqa: B015 # pyright: ignore[reportUnusedExpression]
