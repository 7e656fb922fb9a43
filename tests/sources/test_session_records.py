"""Records of session files that look like others: what a person typed, how a call really ended,
what was copied.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.model.flaws import flaws_of
from otel_reliability.model.run import Outcome
from tests.corpora.session_files import runs_in
from tests.sources.session_writers import (
    GEMINI_PROMPT,
    SESSION,
    TOKENS,
    Claude,
    Codex,
    at,
    gemini,
    gemini_call,
    in_order,
    opencode,
    qwen,
    write,
)


@pytest.mark.parametrize(
    ("result", "path", "failed"),
    [
        ("PreToolUse:Bash hook error: [guard.sh]: no pushing", (), 0),
        ("Bash operation blocked by hook:\n- no pushing", (), 0),
        ("Permission for this action has been denied. Reason: it pushes", (), 0),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", (), 0),
        ("<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>", (), 0),
        ("<tool_use_error>Error: No such tool available: Fly</tool_use_error>", ("Bash",), 1),
        ("Exit code 137\nKilled", ("Bash",), 1),
        ("Exit code 1\nrejected: PreToolUse:Bash hook error", ("Bash",), 1),
    ],
)
def test_claude_results_show_how_a_call_ended(
    tmp_path: Path, result: str, path: tuple[str, ...], failed: int
) -> None:
    Claude(tmp_path).user("Publish it.").call("c1", result).answer()

    [run] = runs_in(tmp_path)

    assert (run.path, sum(not call.ok for call in run.tool_calls or ())) == (path, failed)
    assert run.outcome is not Outcome.CANCELLED


def test_claude_command_that_a_user_killed_is_cancelled(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Run it.").call("c1", "Exit code 137")
    session.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])

    [run] = runs_in(tmp_path)

    assert (run.outcome, [call.ok for call in run.tool_calls or ()]) == (Outcome.CANCELLED, [True])


def test_claude_result_that_quotes_an_interruption_is_not_cancelled(tmp_path: Path) -> None:
    said = "in the log: [Request interrupted by user for tool use]"
    Claude(tmp_path).user("Read the log.").call("c1", said, name="Read", error=False)

    [run] = runs_in(tmp_path)

    assert (run.path, run.outcome) == (("Read",), Outcome.COMPLETED)


def test_claude_slash_command_that_the_model_answers_is_a_prompt(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Make it faster.").call("c1", "ok", error=False).answer()
    session.user("<command-name>/cost</command-name>\n<command-args></command-args>")
    session.user("<local-command-stdout>$1.20</local-command-stdout>")
    session.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    session.user([{"type": "text", "text": "Review the change."}], isMeta=True)
    session.call("c2", "ok", name="Grep", error=False).answer()

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == [("Bash",), ("Grep",)]
    assert [run.input_tokens for run in runs] == [200, 200]


def test_claude_records_of_the_program_are_no_prompts(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Make it faster.").call("c1", "ok", error=False)
    session.user("<bash-input>ls</bash-input>").user("<bash-stderr>no</bash-stderr>")
    session.user("This session is being continued from a previous conversation that ran out …")
    session.call("c2", "ok", error=False)

    [run] = runs_in(tmp_path)

    assert run.path == ("Bash", "Bash")


@pytest.mark.parametrize(
    ("texts", "is_prompt"),
    [
        (["<ide_opened_file>a.py</ide_opened_file>", "Make it faster."], True),
        (["<system-reminder>be kind</system-reminder>", "Make it faster."], True),
        (["[Request interrupted by user]", "Make it faster."], True),
        (["<system-reminder>be kind</system-reminder>"], False),
        (["<ide_selection>x</ide_selection>", " "], False),
    ],
)
def test_claude_prompts_beside_what_the_program_adds(
    tmp_path: Path, texts: list[str], is_prompt: bool
) -> None:
    session = Claude(tmp_path).user("Look.").call("c1", "ok", error=False)
    session.user([{"type": "text", "text": said} for said in texts])
    session.call("c2", "ok", name="Edit", error=False).answer()

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == (
        [("Bash",), ("Edit",)] if is_prompt else [("Bash", "Edit")]
    )
    assert (runs[0].outcome is Outcome.CANCELLED) is texts[0].startswith("[Request")


def test_claude_calls_that_providers_number_anew_count_each(tmp_path: Path) -> None:
    """Some models behind Claude Code name their calls by position: `Bash_0` in every answer."""
    for number in range(2):
        session = Claude(tmp_path, f"{number}" * 8 + SESSION[8:])
        session.user("Make it faster.")
        session.call("Bash_0", "ok", error=False).call("Bash_0", "Exit code 1").answer()

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == [("Bash", "Bash")] * 2
    assert [[call.ok for call in run.tool_calls or ()] for run in runs] == [[True, False]] * 2


def test_claude_answers_without_an_id_count_each(tmp_path: Path) -> None:
    Claude(tmp_path).user("Hello.").answer(id=None).user("Bye.").answer(id=None).answer(id=None)

    assert [run.input_tokens for run in in_order(tmp_path)] == [100, 200]


def test_claude_agents_beside_the_session_are_found_by_their_id(tmp_path: Path) -> None:
    """Releases 2.0.x; also agents that belong to nothing, which warm up a cache."""
    session = Claude(tmp_path).user("Have it read.")
    session.answer({"type": "tool_use", "id": "t1", "name": "Task", "input": {}})
    for agent in ("0a1b2c3d", "ffffffff"):
        inner = Claude(tmp_path)
        inner.path = session.path.with_name(f"agent-{agent}.jsonl")
        inner.answer({"type": "tool_use", "id": agent, "name": "Read"}, name=f"msg_{agent}")
        inner.result(agent, "ok", error=False)
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "read"}
    session.user([block], toolUseResult={"agentId": "0a1b2c3d"}).answer()

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (("Read", "Task"), 300)


def test_claude_agent_that_fails_does_not_fail_the_prompt(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Have it read.")
    session.answer({"type": "tool_use", "id": "t1", "name": "Agent", "input": {}})
    inner = {"isSidechain": True, "agentId": "a1"}
    meant = Claude(tmp_path)
    meant.path = session.path.with_suffix("") / "subagents/deep/agent-a1.jsonl"
    used: dict[str, Any] = {"type": "tool_use", "id": "t2", "name": "Read", "input": {}}
    meant.record("assistant", message={"id": "m9", "model": "m", "content": [used]}, **inner)
    meant.record("assistant", message={"model": "<synthetic>"}, isApiErrorMessage=True, **inner)
    result = {"type": "tool_result", "tool_use_id": "t2", "content": "ok"}
    meant.record("user", message={"role": "user", "content": [result]}, **inner)
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "API error", "is_error": True}
    session.user([block], toolUseResult={"agentId": "a1"}).answer()

    [run] = runs_in(tmp_path)

    assert (run.path, run.ended_in_error) == (("Agent", "Read"), False)


@pytest.mark.parametrize(
    ("output", "ok", "is_step"),
    [
        (json.dumps({"output": "x" * 5_000, "metadata": {"exit_code": 2}}), False, True),
        (json.dumps({"output": "Exit code: 2", "metadata": {"exit_code": 0}}), True, True),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nExit code: 7\nrejected by user", True, True),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\naborted by user", True, True),
        ('a log: Rejected("no"), aborted by user, Exit code: 3', True, True),
        ("Wall time: 2.0 seconds\naborted by user", True, True),
        ("`/bin/bash -lc 'git push'` rejected: no pushing", True, False),
        ("exec command rejected by user", True, False),
    ],
)
def test_codex_outputs_show_how_a_call_ended(
    tmp_path: Path, output: str, ok: bool, is_step: bool
) -> None:
    Codex(tmp_path, SESSION).prompt("Try it.").call("c1", output).call("c2", "Exit code: 0")

    [run] = runs_in(tmp_path)

    assert [call.ok for call in run.tool_calls or ()] == [ok, True] if is_step else [True]


@pytest.mark.parametrize(
    ("event", "ok"),
    [
        ({"type": "mcp_tool_call_end", "result": {"Err": "refused"}}, False),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"isError": True}}}, False),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"content": []}}}, True),
        ({"type": "patch_apply_end", "success": False}, False),
        ({"type": "exec_command_end", "exit_code": 3}, False),
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_codex_events_show_how_a_call_ended(
    tmp_path: Path, event: dict[str, Any], ok: bool, is_first: bool
) -> None:
    """They come before the output of the call, or after it."""
    session = Codex(tmp_path, SESSION).prompt("Try it.").call("c1", "no such ticket")
    position = -1 if is_first else len(session.records)
    ended = {"timestamp": at(9), "type": "event_msg", "payload": {**event, "call_id": "c1"}}
    session.records.insert(position, ended)
    session.prompt("Thanks.")

    run = in_order(tmp_path)[0]

    assert [call.ok for call in run.tool_calls or ()] == [ok]


def test_codex_fork_without_turn_ids_counts_its_history_once(tmp_path: Path) -> None:
    first = Codex(tmp_path, SESSION).prompt("Try it.").call("c1", "Exit code: 0").tokens(1)
    first.prompt("Again.").call("c2", "Exit code: 0").tokens(2)
    fork = Codex(tmp_path, "22222222" + SESSION[8:], begin=100)
    fork.records += [{**each, "timestamp": at(100.01)} for each in first.records]
    fork.prompt("Otherwise.").call("c3", "Exit code: 1").tokens(3)

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == [("shell",)] * 3
    assert [run.input_tokens for run in runs] == [100, 100, 100]


def test_codex_context_in_events_is_no_prompt(tmp_path: Path) -> None:
    session = Codex(tmp_path, SESSION)
    added = {"type": "user_message", "message": "be kind", "kind": "user_instructions"}
    session.records.append({"timestamp": at(0), "type": "event_msg", "payload": added})
    session.line("event_msg", type="user_message", message="<environment_context>\n</…>")
    session.prompt("Try it.").call("c1", "Exit code: 0").tokens(1)

    [run] = runs_in(tmp_path)

    assert run.path == ("shell",)


def test_codex_sessions_that_are_alike_count_each(tmp_path: Path) -> None:
    for number in range(2):
        session = Codex(tmp_path, f"{number}" * 8 + SESSION[8:], begin=60 * number)
        session.prompt("Try it.").call(f"c{number}", "Exit code: 0").tokens(1)

    assert [run.input_tokens for run in in_order(tmp_path)] == [100, 100]


def test_codex_agent_of_an_archived_session_is_found(tmp_path: Path) -> None:
    agent = "33333333" + SESSION[8:]
    parent = Codex(tmp_path, SESSION).prompt("Have it read.")
    parent.line("response_item", type="function_call", name="spawn_agent", call_id="c1")
    given = {"call_id": "c1", "output": json.dumps({"agent_id": agent})}
    parent.line("response_item", type="function_call_output", **given)
    child = Codex(tmp_path, agent, begin=5)
    child.records[0]["payload"]["parent_thread_id"] = SESSION
    child.prompt("Read it.").call("c2", "Exit code: 0").tokens(1)
    archive = tmp_path / ".codex/archived_sessions"
    archive.mkdir()
    shutil.move(parent.path, archive)

    [run] = runs_in(tmp_path / ".codex")

    assert (run.path, run.input_tokens) == (("spawn_agent", "shell"), 100)


def test_codex_document_of_the_first_releases_is_read(tmp_path: Path) -> None:
    said = [{"type": "input_text", "text": "List the files."}]
    call = {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"}
    output = json.dumps({"output": "no", "metadata": {"exit_code": 2}})
    document = {
        "session": {"timestamp": at(0), "id": SESSION, "instructions": ""},
        "items": [
            {"type": "message", "role": "user", "content": said},
            call,
            {"type": "function_call_output", "call_id": "c1", "output": output},
        ],
    }
    path = tmp_path / ".codex/sessions" / f"rollout-2026-03-01-{SESSION}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document, indent=2))

    [run] = runs_in(tmp_path)

    assert ([call.ok for call in run.tool_calls or ()], run.tokens) == ([False], None)


def test_codex_work_of_a_fork_goes_on_in_its_turn(tmp_path: Path) -> None:
    """A turn that was copied, and in which the fork went on, keeps what is new in it."""
    first = Codex(tmp_path, SESSION).prompt("Try it.").call("c1", "Exit code: 0").tokens(1)
    fork = Codex(tmp_path, "22222222" + SESSION[8:], begin=100)
    fork.records += [{**each, "timestamp": at(100.01)} for each in first.records]
    fork.call("c2", "Exit code: 1").tokens(2)

    runs = in_order(tmp_path)

    assert [len(run.tool_calls or ()) for run in runs] == [1, 1]
    assert [run.input_tokens for run in runs] == [100, 100]


@pytest.mark.parametrize(
    ("name", "output", "ok"),
    [
        ("run_shell_command", "Output: no\nExit Code: 2\nSignal: 0\nProcess Group PGID: 5", False),
        ("run_shell_command", "Output: Exit Code: 2\nExit Code: 0\nProcess Group PGID: 5", True),
        ("run_shell_command", "Output: see\nExit Code: 2\nin line 3\nProcess Group PGID: 5", True),
        ("read_file", "Exit Code: 2", True),
    ],
)
def test_gemini_exit_code_is_the_shells_own(
    tmp_path: Path, name: str, output: str, ok: bool
) -> None:
    gemini(tmp_path, [GEMINI_PROMPT, gemini_call(name, output)])

    [run] = runs_in(tmp_path)

    assert [call.ok for call in run.tool_calls or ()] == [ok]


def test_gemini_result_that_quotes_a_cancellation_is_not_cancelled(tmp_path: Path) -> None:
    gemini(tmp_path, [GEMINI_PROMPT, gemini_call("read_file", "Command was cancelled by user")])

    [run] = runs_in(tmp_path)

    assert run.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("content", "is_known"), [("", False), ("Done.", True), ([{"text": "Done."}], True)]
)
def test_gemini_call_that_was_killed_leaves_the_path_unknown(
    tmp_path: Path, content: object, is_known: bool
) -> None:
    """An answer that says nothing asked for a call; of one that was killed nothing is written."""
    last = {"type": "gemini", "content": content, "tokens": TOKENS, "model": "m"}
    gemini(tmp_path, [GEMINI_PROMPT, gemini_call("read_file", "x"), last])

    [run] = runs_in(tmp_path)

    assert (run.path is not None) is is_known
    assert ("session_file_partial" in flaws_of(run)) is not is_known
    assert run.input_tokens == 180


def test_qwen_results_that_quote_others_are_no_failures(tmp_path: Path) -> None:
    """The provider of the model names each call `call_0`."""
    quoted = "Request was aborted; aborted by user; Exit Code: 2"
    qwen(tmp_path, [("read_file", quoted), ("run_shell_command", "Output: x\nExit Code: 2")])

    [run] = runs_in(tmp_path)

    assert [call.ok for call in run.tool_calls or ()] == [True, False]
    assert (run.outcome, run.input_tokens) == (Outcome.COMPLETED, 180)


def test_qwen_command_that_no_model_answers_is_no_run(tmp_path: Path) -> None:
    qwen(tmp_path, [("read_file", "x")], prompt="Run it.")
    qwen(tmp_path, [], prompt="/model", session="22222222" + SESSION[8:])

    assert [run.path for run in runs_in(tmp_path)] == [("read_file",)]


def test_copilot_counts_what_the_agent_did_for_what_was_typed(tmp_path: Path) -> None:
    def event(number: int, kind: str, **data: object) -> dict[str, Any]:
        known = {"id": f"e{number}", "timestamp": at(number), "parentId": None}
        return {"type": kind, "data": data, **known}

    def call(number: int, name: str) -> list[dict[str, Any]]:
        ended = {"toolCallId": name, "success": True}
        return [
            event(number, "tool.execution_start", toolCallId=name, toolName=name, model="m"),
            event(number, "tool.execution_complete", **ended),
        ]

    events = [
        event(0, "session.start", sessionId=SESSION, copilotVersion="1.0.1"),
        event(1, "user.message", content="Build it.", source="user"),
        event(2, "user.message", content="A skill.", source="skill-pdf"),
        *call(3, "bash"),
        event(4, "tool.user_requested", toolCallId="mine", toolName="mine"),
        *call(5, "mine"),
    ]
    write(tmp_path / ".copilot/session-state" / SESSION / "events.jsonl", events)

    [run] = runs_in(tmp_path)

    assert run.path == ("bash",)


def test_opencode_sessions_with_equal_call_ids_count_each(tmp_path: Path) -> None:
    opencode(tmp_path, 2, 1_772_359_200_000)

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == [("read",), ("read",)]
    assert [run.input_tokens for run in runs] == [90, 90]
    assert {run.outcome for run in runs} == {Outcome.COMPLETED}
