"""Session files of coding agents, as they were recorded and as they may be."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import session_files
from otel_reliability import recording
from otel_reliability.errors import SourceError
from otel_reliability.model.flaws import flaws_of
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.span import Resource
from otel_reliability.recording import Recording
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.from_plain import time_ns
from otel_reliability.sources.sessions.formats import Telemetry
from otel_reliability.sources.sessions.run import Seen, SessionPrompt
from tests.corpora.session_files import runs_in
from tests.shared import shared

AGENTS = [
    "claude_code",
    "claude_code_1.0.68",
    "claude_code_2.1.140",
    "claude_code_2.1.47",
    "codex",
    "codex_0.145",
    "codex_0.27",
    "codex_0.98",
    "copilot_cli",
    "gemini_cli",
    "opencode",
    "opencode_1.1",
    "qwen_code",
    "qwen_code_0.10",
    "qwen_code_0.5",
]


@pytest.mark.parametrize("agent", AGENTS)
def test_prompts_are_requests_of_their_runs(agent: str) -> None:
    """So that runs with alike prompts make groups; no text of them stays."""
    runs = [
        run
        for file in sorted(shared(f"corpora/sessions/{agent}").glob("*/truth.json"))
        for run in runs_in(file.parent / "home")
        if run.model_calls or run.tool_calls
    ]

    assert sum(run.request is not None for run in runs) >= 0.9 * len(runs) > 0


SILENT_STOPS = {"claude_code_1.0.68"}
"""Releases that write nothing when a prompt is stopped."""


@pytest.mark.parametrize("agent", AGENTS)
def test_stopped_prompts_are_cancelled_runs(agent: str) -> None:
    wanted: list[bool] = []
    found: list[bool] = []
    for file in sorted(shared(f"corpora/sessions/{agent}").glob("*/truth.json")):
        text = file.read_text()
        if '"cancelled"' not in text and '"rejected"' not in text and "abort" not in text:
            continue
        runs = runs_in(file.parent / "home")
        for truth in json.loads(text)["runs"]:
            start = time_ns(truth["started"])
            near = min(runs, key=lambda run: abs(run.start_ns - start))
            stopped = truth.get("outcome") == "cancelled" and agent not in SILENT_STOPS
            wanted.append(stopped)
            found.append(near.outcome is Outcome.CANCELLED)

    assert found == wanted


def test_a_copied_session_counts_once() -> None:
    home = shared("corpora/sessions/claude_code/fork/home")
    once = runs_in(home)
    twice = runs_in(home, home)

    assert len(once) == len(twice)
    assert sum(run.tokens or 0 for run in once) == sum(run.tokens or 0 for run in twice)


@pytest.mark.parametrize(
    ("release", "agent", "paths", "tokens"),
    [
        ("qwen_code_0.0", "qwen-code", [("read_file",)], [900]),
        ("codex_0.7x", "codex", [("local_shell",), ()], [5000, 5200]),
        ("copilot_cli_0.0.343", "copilot-cli", [("bash", "view")], [None]),
    ],
)
def test_shapes_that_could_not_be_recorded(
    release: str, agent: str, paths: list[tuple[str, ...]], tokens: list[int | None]
) -> None:
    """Written by hand after public parsers: older releases of the same agents."""
    runs = runs_in(shared(f"corpora/sessions/samples_crafted/{release}/home"))

    assert [run.key.agent for run in runs] == [agent] * len(paths)
    assert [run.path for run in runs] == paths
    assert [run.input_tokens for run in runs] == tokens


@pytest.mark.parametrize(
    ("release", "is_path_known"), [("gemini_cli_0.22", True), ("gemini_cli_0.6", False)]
)
def test_what_a_file_does_not_hold_is_unknown_and_named(release: str, is_path_known: bool) -> None:
    """Release 0.22 drops the tokens of answers without a text, 0.6 all calls too."""
    for file in sorted(shared(f"corpora/sessions/{release}").glob("*/truth.json")):
        truths = json.loads(file.read_text())["runs"]
        runs = sorted(runs_in(file.parent / "home"), key=lambda run: run.start_ns)
        for run, truth in zip(runs, truths, strict=True):
            is_whole = (run.input_tokens, run.output_tokens) == (
                truth["input_tokens"],
                truth["output_tokens"],
            )
            assert is_whole is ("session_file_partial" not in flaws_of(run))
            assert is_whole or (run.tokens, run.token_pressure, run.cost) == (None, None, None)
            assert (run.path is not None) is is_path_known


def test_runs_without_output_tokens_are_named() -> None:
    named = {
        agent: sum("session_file_partial" in flaws_of(run) for run in runs)
        for agent in AGENTS
        if (runs := runs_in(shared(f"corpora/sessions/{agent}")))
    }

    assert {agent: count for agent, count in named.items() if count} == {
        "claude_code_2.1.47": 12,
        "opencode": 1,
    }


def test_an_aborted_step_leaves_the_tokens_of_its_prompt_unknown() -> None:
    stopped, after = runs_in(shared("corpora/sessions/opencode/stop/home"))

    assert (stopped.tokens, stopped.path) == (None, ("read", "bash"))
    assert "session_file_partial" in flaws_of(stopped)
    assert after.tokens
    assert "session_file_partial" not in flaws_of(after)


@pytest.mark.parametrize(
    ("folder", "seconds", "path", "tokens", "models"),
    [
        ("a" * 64, None, None, None, 2),
        ("shop", None, (), 200, 2),
        ("a" * 64, (2.0, 2.001), ("ls", "ls"), 200, 2),
        ("a" * 64, (2.0, 2.5), ("ls", "ls"), None, 3),
    ],
)
def test_a_document_of_gemini_shows_what_it_lost(
    tmp_path: Path,
    folder: str,
    seconds: tuple[float, float] | None,
    path: tuple[str, ...] | None,
    tokens: int | None,
    models: int,
) -> None:
    """Two answers of 100 tokens; the calls of the first one are of one answer or of two."""

    def message(number: int, **more: object) -> dict[str, object]:
        at = f"2026-01-01T00:00:0{number}.000Z"
        return {"id": str(number), "timestamp": at, "content": "go", **more}

    calls = [
        {
            "id": f"c{at}",
            "name": "ls",
            "args": {"at": at},
            "status": "success",
            "timestamp": f"2026-01-01T00:00:0{at:.3f}Z",
        }
        for at in seconds or ()
    ]
    answer = {"type": "gemini", "model": "m", "tokens": {"input": 90, "output": 10, "total": 100}}
    document = {
        "sessionId": "s",
        "projectHash": "p",
        "startTime": "2026-01-01T00:00:00.000Z",
        "messages": [
            message(0, type="user"),
            message(1, **answer, **({"toolCalls": calls} if calls else {})),
            message(4, **answer),
        ],
    }
    chats = tmp_path / ".gemini/tmp" / folder / "chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-01-01T00-00-abcdefab.json").write_text(json.dumps(document, indent=2))

    [run] = runs_in(tmp_path)

    assert (run.path, run.tokens, len(run.model_calls)) == (path, tokens, models)
    assert ("session_file_partial" in flaws_of(run)) is (tokens is None)


def test_a_folder_without_sessions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(SourceError, match="no file in this folder"):
        runs_in(tmp_path)


@pytest.mark.parametrize(
    "agent", ["claude_code", "codex", "copilot_cli", "gemini_cli", "qwen_code"]
)
def test_session_files_and_telemetry_of_one_prompt_give_one_run(agent: str) -> None:
    """Prompts that telemetry lacks come from the files. Gemini's telemetry does not separate two of
    the prompts.
    """
    folder = shared(f"corpora/sessions/with_otlp/{agent}")
    homes = [file.parent / "home" for file in sorted(folder.glob("*/truth.json"))]
    telemetry = by_session(runs_in(folder / "otlp.jsonl.gz"))
    files = by_session(runs_in(*homes))
    both = by_session(runs_in(folder / "otlp.jsonl.gz", *homes))

    assert len(both) == len(homes)
    merged = agent == "gemini_cli"
    for name, runs in both.items():
        assert runs == (telemetry[name] if merged else max(telemetry[name], files[name]))


def by_session(runs: list[Run]) -> Counter[str | None]:
    """Return how many runs each session has."""
    return Counter(run.session_id for run in runs)


def test_prompts_that_telemetry_reports_too_are_counted_as_repeated() -> None:
    folder = shared("corpora/sessions/with_otlp/copilot_cli")
    recording = Recording()
    recording.read_all([folder / "otlp.jsonl.gz", *sorted(folder.glob("*/home"))])

    assert recording.repeated_prompts == 4  # of six: its telemetry lacks two


def test_ids_are_seen_once_and_take_few_bytes() -> None:
    """Twelve to 25 bytes an id, in place of 90."""
    seen = Seen()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        new = [seen.add("call", f"toolu_{number % 50_000}") for number in range(60_000)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sum(new) == 50_000
    assert not any(new[50_000:])
    assert after - before - sys.getsizeof(new) < 30 * 50_000


def test_memory_of_telemetry_is_bounded_and_still_knows_each_session() -> None:
    telemetry = Telemetry(limit=100)
    begin_s = 1_700_000_000
    for number in range(1_000):
        for session in ("one", "two"):
            run = SessionPrompt("codex", session, "k", (begin_s + number) * 10**9, Resource.of({}))
            telemetry.see(Batch(spans=run.batch().spans))

    assert telemetry.unit <= 32
    for session, is_known in (("one", True), ("two", True), ("three", False)):
        run = SessionPrompt("codex", session, "k", (begin_s + 500) * 10**9, Resource.of({}))
        assert telemetry.has(run) is is_known


def test_sessions_that_were_closed_early_are_scored_with_their_later_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_files.write(tmp_path, 8)
    whole = Recording()
    whole.read_all([tmp_path])
    monkeypatch.setattr(recording, "OPEN_SESSIONS", 0)
    early = Recording()
    early.read_all([tmp_path])

    assert (whole.engine.sessions.number_open > 1, early.engine.sessions.number_open) == (True, 0)
    scores = [
        [(one.session_id, one.runs, one.reliability) for one in each.sessions(each.agents()[0])]
        for each in (whole.close(), early.close())
    ]
    assert scores[0] == scores[1]
    assert {len(runs) for _, runs, _ in scores[0]} == {session_files.PROMPTS}
