"""Recordings of coding agents against what their sessions really did: from log events, from spans,
and from both.
"""

from __future__ import annotations

import functools
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pytest
from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import RawLog, RawSpan
from otel_reliability.sources.otlp_json import read_file
from tests.shared import SHARED, shared

FOLDER: Final = "corpora/coding_agents"
CAPTURES: Final = tuple(
    sorted(
        name
        for file in (SHARED / FOLDER).glob("*.jsonl.gz")
        if not (name := file.name.removesuffix(".jsonl.gz")).endswith(".metrics")
    )
)
BOTH = "both"
EVENTS = "events"
SPANS = "spans"
WITH_SPANS: Final = ("claude_code-traces", "codex-traces", "gemini_cli", "qwen_code")
CASES: Final = [
    (capture, signal)
    for capture in CAPTURES
    for signal in ((BOTH, EVENTS, SPANS) if capture.startswith(WITH_SPANS) else (EVENTS,))
] or [pytest.param("", "", marks=pytest.mark.skip(reason=f"../shared/{FOLDER} is not here"))]
every_case = pytest.mark.parametrize(("capture", "signal"), CASES)

FIELDS: Final = ("found", "path", "failures", "retries", "tokens", "session")
EVERYWHERE: Final = (BOTH, EVENTS, SPANS)
KNOWN: Final[tuple[tuple[str, tuple[str, ...], str, tuple[str, ...], str], ...]] = (
    # capture, signals, runs that begin with, fields, reason
    (
        "claude_code-traces",
        (EVENTS,),
        "mcp",
        ("path",),
        "without details events name every MCP tool mcp_tool",
    ),
    (
        "codex",
        EVERYWHERE,
        "subagent_bg",
        ("tokens",),
        "the CLI exited before the subagent's last response was recorded",
    ),
    ("codex-traces", (SPANS,), "retry3", ("retries",), "spans do not hold that a command failed"),
    ("codex-traces", (SPANS,), "edit_miss", ("failures",), "spans do not hold that a call failed"),
    (
        "codex-traces",
        (SPANS,),
        "mcp",
        ("path", "failures", "retries"),
        "spans join server and tool, and hold no failure",
    ),
    ("codex-traces", (SPANS,), "denied", ("path",), "spans do not hold that a call was refused"),
    (
        "gemini_cli-logs",
        EVERYWHERE,
        "retry3",
        ("retries",),
        "without content no signal holds the exit code",
    ),
    ("gemini_cli-traces", (EVENTS,), "retry3", ("retries",), "events do not hold the exit code"),
    (
        "gemini_cli-logs_noprompts",
        (BOTH, EVENTS),
        "edit_miss",
        ("retries",),
        "arguments are unknown",
    ),
    (
        "gemini_cli-logs_noprompts",
        (EVENTS,),
        "parallel_fail",
        ("retries",),
        "arguments are unknown",
    ),
    (
        "gemini_cli",
        (SPANS,),
        "talk",
        ("found", "path", "failures", "tokens"),
        "spans do not tell prompts apart",
    ),
    ("gemini_cli-logs", (SPANS,), "", ("tokens",), "spans hold tokens only with content"),
    (
        "gemini_cli-logs",
        (SPANS,),
        "mcp",
        ("failures", "retries"),
        "spans hold a failure only with content",
    ),
    (
        "gemini_cli-logs",
        (SPANS,),
        "edit_miss",
        ("failures",),
        "spans hold a failure only with content",
    ),
    (
        "gemini_cli-logs",
        (SPANS,),
        "parallel_fail",
        ("failures",),
        "spans hold a failure only with content",
    ),
    (
        "qwen_code",
        (EVENTS,),
        "poll",
        ("tokens",),
        "the response before a detected loop has no event",
    ),
    (
        "qwen_code-traces",
        (SPANS,),
        "edit_miss",
        ("retries",),
        "spans hold no arguments without details",
    ),
)
"""Why a field of a run is not as the truth has it."""


class Recording(NamedTuple):
    """What a capture holds: one batch a request, and the truth."""

    batches: tuple[tuple[Sequence[RawSpan], Sequence[RawLog]], ...]
    truth: dict[str, Any]


@functools.cache
def recording(capture: str) -> Recording:
    batches = list(read_file(shared(f"{FOLDER}/{capture}.jsonl.gz")))
    assert not [problem for batch in batches for problem in batch.malformed]
    truth = json.loads((SHARED / FOLDER / f"{capture}.truth.json").read_text())
    return Recording(tuple((batch.spans, batch.logs) for batch in batches), truth)


def items(capture: str, signal: str) -> list[RawSpan | RawLog]:
    found: list[RawSpan | RawLog] = []
    for spans, logs in recording(capture).batches:
        found.extend(spans if signal != EVENTS else ())
        found.extend(logs if signal != SPANS else ())
    return found


def new_engine(clock: Callable[[], float] = lambda: 0.0) -> Engine:
    """An engine that hashes equal calls equally."""
    return Engine(Settings.load({"hash_key": "ab" * 32}), clock=clock, wall=None)


def receive(engine: Engine, received: Sequence[RawSpan | RawLog]) -> None:
    engine.receive([one for one in received if isinstance(one, RawSpan)])
    engine.receive_logs([one for one in received if isinstance(one, RawLog)])


def rebuilt_from(received: Sequence[RawSpan | RawLog]) -> list[Run]:
    """The runs of spans and events that arrive in batches of this order."""
    engine = new_engine()
    for start in range(0, len(received), 97):
        receive(engine, received[start : start + 97])
    engine.flush(CloseReason.END_OF_INPUT)
    assert (
        sum(number for (what, _), number in engine.accounts.items() if what != "received")
        == (engine.accounts["received", ""])
    )
    return engine.take_final()


@functools.cache
def rebuilt(capture: str, signal: str) -> tuple[Run, ...]:
    return tuple(rebuilt_from(items(capture, signal)))


def matched(capture: str, signal: str) -> tuple[list[tuple[dict[str, Any], Run | None]], list[Run]]:
    """True runs with their own, by trace, else within the session by their order; and the runs that
    are left over.
    """
    tops = sorted(
        (run for run in rebuilt(capture, signal) if not run.nested), key=lambda run: run.start_ns
    )
    by_session: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for true in recording(capture).truth["runs"]:
        by_session[true["session_id"]].append(true)
    pairs: list[tuple[dict[str, Any], Run | None]] = []
    for session, trues in by_session.items():
        for true in sorted(trues, key=lambda true: int(true.get("prompt_time_unix_nano") or 0)):
            traces: set[str] = set(true.get("trace_ids") or [])
            found = next((run for run in tops if run.trace_id.hex() in traces), None) or next(
                (run for run in tops if run.session_id == session), None
            )
            pairs.append((true, found))
            if found is not None:
                tops.remove(found)
    lost: list[dict[str, Any]] = recording(capture).truth.get("lost_runs", [])
    sessions = {true["session_id"] for true in lost}
    return pairs, [run for run in tops if run.session_id not in sessions]


def wrong(true: dict[str, Any], run: Run | None) -> Iterator[str]:
    if run is None:
        yield "found"
        return
    calls = [
        call for call in true["tool_calls"] if any(call.get("in_telemetry", {"": True}).values())
    ]
    names = [bare(call["name"]) for call in calls]
    path = [bare(name) for name in run.path or ()]
    is_free = true["scenario"] in {"parallel", "concurrent"} or "subagent" in true["scenario"]
    if run.path is None or (sorted(names) != sorted(path) if is_free else names != path):
        yield "path"
    raised = sum(call.get("failure_kind") == "raised" for call in calls)
    soft = sum(call.get("failure_kind") == "soft" for call in calls)
    if not raised <= sum(not call.ok for call in run.tool_calls or ()) <= raised + soft:
        yield "failures"
    if run.retries != true["identical_retries"]:
        yield "retries"
    if (run.input_tokens or 0, run.output_tokens or 0) != (
        true["input_tokens"],
        true["output_tokens"],
    ):
        yield "tokens"
    if run.session_id != true["session_id"]:
        yield "session"


def bare(name: str) -> str:
    return name.rpartition("__")[2] if name.startswith("mcp__") else name


def known(capture: str, signal: str, true: dict[str, Any]) -> set[str]:
    return {
        field
        for row in KNOWN
        if capture.startswith(row[0]) and signal in row[1] and is_about(row, true)
        for field in row[3]
    }


def is_about(row: tuple[Any, ...], true: dict[str, Any]) -> bool:
    return true["run_id"].startswith(row[2])


@every_case
def test_every_run_is_found_and_none_is_invented(capture: str, signal: str) -> None:
    pairs, ghosts = matched(capture, signal)

    assert [
        true["run_id"]
        for true, run in pairs
        if run is None and "found" not in known(capture, signal, true)
    ] == []
    assert ghosts == []


@every_case
def test_every_field_is_exact_but_for_what_is_known(capture: str, signal: str) -> None:
    pairs, _ = matched(capture, signal)
    unknown = {
        true["run_id"]: found
        for true, run in pairs
        if (found := set(wrong(true, run)) - known(capture, signal, true))
    }

    assert unknown == {}


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: f"{row[0]} {row[2]}")
def test_every_known_difference_is_still_there(row: tuple[Any, ...]) -> None:
    if not CAPTURES:
        pytest.skip(f"../shared/{FOLDER} is not here")
    name, signals, _, fields, _ = row
    here = [
        (one, signal)
        for one in CAPTURES
        if one.startswith(name)
        for signal in signals
        if (one, signal) in CASES
    ]
    found = {
        field
        for capture, signal in here
        for true, run in matched(capture, signal)[0]
        if is_about(row, true)
        for field in wrong(true, run)
    }

    assert set(fields) <= found


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_exact_in_97_of_100_runs(field: str) -> None:
    if not CAPTURES:
        pytest.skip(f"../shared/{FOLDER} is not here")
    exact: Counter[bool] = Counter()
    for capture in CAPTURES:
        pairs, _ = matched(capture, BOTH if capture.startswith(WITH_SPANS) else EVENTS)
        exact.update(field not in set(wrong(true, run)) for true, run in pairs)

    assert exact[True] / exact.total() >= 0.97


@every_case
def test_order_and_duplicates_change_nothing(capture: str, signal: str) -> None:
    received = items(capture, signal) * 2
    random.Random(2).shuffle(received)

    assert {run.run_id: run for run in rebuilt_from(received)} == {
        run.run_id: run for run in rebuilt(capture, signal)
    }


@every_case
def test_live_runs_are_those_of_the_file(capture: str, signal: str) -> None:
    now = 0.0
    engine = new_engine(lambda: now)
    for spans, logs in recording(capture).batches:
        received = [*(spans if signal != EVENTS else ()), *(logs if signal != SPANS else ())]
        if received:
            now = max(
                now,
                max(one.time_ns if isinstance(one, RawLog) else one.end_ns for one in received)
                / 1e9,
            )
            engine.tick()
            receive(engine, received)
    for _ in range(30):
        now += 60
        engine.tick()
    found = {run.run_id: replace(run, closed_by=CloseReason.ROOT) for run in engine.take_final()}

    assert engine.open_runs == 0
    assert found == {
        run.run_id: replace(run, closed_by=CloseReason.ROOT) for run in rebuilt(capture, signal)
    }
