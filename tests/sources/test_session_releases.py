"""Session files of releases that were not recorded: records as the sources of the agents, or other
readers of their files, describe them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.model.run import Outcome, Run
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
    write,
)


def ok(run: Run) -> list[bool]:
    return [call.ok for call in run.tool_calls or ()]


# --- Claude Code ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "is_step"),
    [
        ("Hook PreToolUse:Bash denied this tool", False),
        ("Execution stopped by PreToolUse hook", False),
        ("Agent type 'reviewer' has been denied by permission rule 'Agent(reviewer)'.", False),
        (
            "<tool_use_error>File is in a directory that is denied by your permission settings.",
            False,
        ),
        ("The user doesn't want to proceed with this tool use. The tool use was rejected", False),
        ("Command timed out after 2m 0.0s", True),
        ("<tool_use_error>InputValidationError: Bash failed</tool_use_error>", True),
        ("<tool_use_error>File has not been read yet. Read it first</tool_use_error>", True),
    ],
)
def test_claude_call_that_a_rule_or_a_hook_denies_is_no_step(
    tmp_path: Path, result: str, is_step: bool
) -> None:
    Claude(tmp_path).user("Publish it.").call("c1", result).answer()

    [run] = runs_in(tmp_path)

    assert ok(run) == ([False] if is_step else [])


def test_claude_error_that_it_overcame_does_not_fail_the_prompt(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Make it faster.")
    session.answer(model="<synthetic>")
    session.records[-1]["isApiErrorMessage"] = True
    session.answer()
    session.user("And smaller.")
    session.answer(model="<synthetic>")
    session.records[-1]["isApiErrorMessage"] = True
    write(session.path, session.records)

    runs = in_order(tmp_path)

    assert [run.ended_in_error for run in runs] == [False, True]
    assert [run.input_tokens for run in runs] == [100, None]


@pytest.mark.parametrize("is_stopped", [True, False])
def test_claude_command_that_was_interrupted(tmp_path: Path, is_stopped: bool) -> None:
    """Releases write it with its output so far; a timeout has the same mark."""
    session = Claude(tmp_path).user("Run it.").call("c1", "half", error=False)
    session.records[-1]["toolUseResult"] = {"stdout": "half", "interrupted": True}
    if is_stopped:
        session.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    else:
        session.answer()

    [run] = runs_in(tmp_path)

    assert run.outcome is (Outcome.CANCELLED if is_stopped else Outcome.COMPLETED)
    assert ok(run) == [True]


def test_claude_prompt_that_reached_the_limit_of_turns_failed(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Read it all.").call("c1", "ok", error=False)
    session.record("attachment", attachment={"type": "max_turns_reached", "maxTurns": 1})

    [run] = runs_in(tmp_path)

    assert (run.path, run.ended_in_error) == (("Bash",), True)


def test_claude_prompt_that_waits_in_the_queue_joins_the_turn_that_goes_on(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Make it faster.").call("c1", "ok", error=False)
    session.record("queue-operation", operation="enqueue", content="And smaller.")
    session.record("queue-operation", operation="remove")
    session.record("attachment", attachment={"type": "queued_command", "prompt": "And smaller."})
    session.call("c2", "ok", name="Edit", error=False).answer()

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (("Bash", "Edit"), 300)


def test_claude_records_around_the_work_are_no_prompts(tmp_path: Path) -> None:
    session = Claude(tmp_path)
    session.record("file-history-snapshot", messageId="x", snapshot={"trackedFileBackups": {}})
    session.record("summary", summary="An earlier session.", leafUuid="x")
    session.user("<command-name>/clear</command-name>").user("Make it faster.")
    session.record("progress", data={"type": "hook_progress", "hookEvent": "PreToolUse"})
    session.call("c1", "ok", error=False)
    session.user("Stop hook feedback:\n[check.sh]: no tests", isMeta=True)
    session.call("c2", "ok", error=False)
    session.record("system", subtype="stop_hook_summary", hookCount=1)
    session.record("system", subtype="turn_duration", durationMs=1_000)

    [run] = runs_in(tmp_path)

    assert run.path == ("Bash", "Bash")


def test_claude_skill_with_a_context_of_its_own_works_for_the_prompt(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Review it.")
    session.answer({"type": "tool_use", "id": "t1", "name": "Skill", "input": {"skill": "review"}})
    inner = Claude(tmp_path)
    inner.path = session.path.with_suffix("") / "subagents/agent-a9.jsonl"
    inner.answer({"type": "tool_use", "id": "t2", "name": "Grep", "input": {}}, name="msg_a9")
    inner.result("t2", "ok", error=False)
    for each in inner.records:
        each.update(isSidechain=True, agentId="a9")
    write(inner.path, inner.records)
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "reviewed"}
    session.user([block], toolUseResult={"status": "forked", "agentId": "a9"}).answer()

    [run] = runs_in(tmp_path)

    assert (sorted(run.path or ()), run.input_tokens) == (["Grep", "Skill"], 300)


def test_claude_fork_with_new_session_counts_its_history_once(tmp_path: Path) -> None:
    first = Claude(tmp_path).user("Make it faster.").call("c1", "Exit code 1").answer()
    fork = Claude(tmp_path, "22222222" + SESSION[8:])
    fork.records = [{**each, "sessionId": fork.session} for each in first.records]
    fork.user("Otherwise.").call("c2", "ok", error=False).answer()

    runs = in_order(tmp_path)

    assert [ok(run) for run in runs] == [[False], [True]]
    assert [run.input_tokens for run in runs] == [200, 200]


def test_claude_output_is_the_greatest_of_the_lines_of_an_answer(tmp_path: Path) -> None:
    """Releases around 2.1.90 write the first lines before the output is known."""
    session = Claude(tmp_path).user("Make it faster.")
    early = {"input_tokens": 100, "output_tokens": 1}
    session.answer(name="m1", stop_reason=None, usage=early)
    used: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}
    session.answer(used, name="m1", usage={"input_tokens": 100, "output_tokens": 118})
    session.result("c1", "ok", error=False)

    [run] = runs_in(tmp_path)

    assert (run.input_tokens, run.output_tokens) == (100, 118)


def test_claude_background_agent_that_reports_later_works_once(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Have it read.")
    session.answer({"type": "tool_use", "id": "t1", "name": "Agent", "input": {}})
    inner = Claude(tmp_path)
    inner.path = session.path.with_suffix("") / "subagents/agent-b7.jsonl"
    inner.answer({"type": "tool_use", "id": "t2", "name": "Read", "input": {}}, name="msg_b7")
    inner.result("t2", "ok", error=False)
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "launched"}
    launched = {"status": "async_launched", "agentId": "b7"}
    session.user([block], toolUseResult=launched).answer()
    session.user(
        "<task-notification>done</task-notification>", origin={"kind": "task-notification"}
    )
    session.answer({"type": "tool_use", "id": "t3", "name": "SendMessage", "input": {}})
    block = {"type": "tool_result", "tool_use_id": "t3", "content": "ok"}
    session.user([block], toolUseResult={"agentId": "b7"}).answer()

    runs = in_order(tmp_path)

    assert [sorted(run.path or ()) for run in runs] == [["Agent", "Read"], ["SendMessage"]]
    assert [run.input_tokens for run in runs] == [300, 200]


def test_claude_output_tokens_of_some_answers_are_no_sum(tmp_path: Path) -> None:
    """An answer that was interrupted has no stop reason: what it spent is not known."""
    session = Claude(tmp_path).user("Read it.").call("c1", "ok", error=False)
    session.answer(stop_reason=None, usage={"input_tokens": 100, "output_tokens": 1})
    session.user([{"type": "text", "text": "[Request interrupted by user]"}])

    [run] = runs_in(tmp_path)

    assert (run.input_tokens, run.output_tokens) == (200, None)


def test_claude_agent_whose_file_is_gone_leaves_the_path_unknown(tmp_path: Path) -> None:
    session = Claude(tmp_path).user("Have it read.")
    session.answer({"type": "tool_use", "id": "t1", "name": "Agent", "input": {}})
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    session.user([block], toolUseResult={"status": "completed", "agentId": "a9"}).answer()

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (None, None)


def test_claude_agent_that_is_asked_again_works_for_each_prompt(tmp_path: Path) -> None:
    session = Claude(tmp_path)
    inner = Claude(tmp_path)
    inner.path = session.path.with_suffix("") / "subagents/agent-a9.jsonl"
    for number in range(2):
        session.user("Have it read.")
        session.answer({"type": "tool_use", "id": f"t{number}", "name": "Agent", "input": {}})
        inner.records += [{}] * (len(session.records) - len(inner.records))
        inner.user(f"Read {number}.")
        called: dict[str, Any] = {"type": "tool_use", "id": f"s{number}", "name": "Read"}
        inner.answer(called, name=f"msg_a{number}").result(f"s{number}", "ok", error=False)
        session.records += [{}] * (len(inner.records) - len(session.records))
        block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
        session.user([block], toolUseResult={"status": "completed", "agentId": "a9"})

    runs = in_order(tmp_path)

    assert [sorted(run.path or ()) for run in runs] == [["Agent", "Read"]] * 2
    assert [run.input_tokens for run in runs] == [200, 200]


# --- Codex ----------------------------------------------------------------------------------------


class CodexTurns(Codex):
    """A rollout in which turns have ids and items are written."""

    def turn(self, number: int, said: str, begins: str = "task_started") -> CodexTurns:
        self.line("event_msg", type=begins, turn_id=f"turn-{number}")
        item = {
            "type": "UserMessage",
            "id": f"u{number}",
            "content": [{"type": "text", "text": said}],
        }
        self.line("event_msg", type="item_completed", turn_id=f"turn-{number}", item=item)
        return self

    def item(self, turn: int, kind: str, call_id: str, **more: object) -> CodexTurns:
        item = {"type": kind, "id": call_id, **more}
        self.line("event_msg", type="item_completed", turn_id=f"turn-{turn}", item=item)
        return self


def test_codex_turns_by_their_later_name(tmp_path: Path) -> None:
    session = CodexTurns(tmp_path, SESSION)
    session.turn(1, "Try it.", "turn_started").call("c1", "Exit code: 0")
    session.line("event_msg", type="turn_complete", turn_id="turn-1", error={"message": "500"})
    session.turn(2, "Again.", "turn_started").call("c2", "Exit code: 1")

    runs = in_order(tmp_path)

    assert [ok(run) for run in runs] == [[True], [False]]
    assert [run.ended_in_error for run in runs] == [True, False]


@pytest.mark.parametrize("call_id", [None, "ws_1"])
def test_codex_searches_that_the_provider_executes_are_calls(
    tmp_path: Path, call_id: str | None
) -> None:
    session = Codex(tmp_path, SESSION).prompt("Find it.")
    for number, status in enumerate(("completed", "failed")):
        named = {} if call_id is None else {"id": f"{call_id}{number}"}
        action = {"type": "search", "query": f"q{number}"}
        search = {"type": "web_search_call", "status": status, "action": action}
        session.line("response_item", **search, **named)
    session.tokens(1)
    fork = Codex(tmp_path, "22222222" + SESSION[8:], begin=100)
    fork.records += [{**each, "timestamp": at(100.01)} for each in session.records]
    fork.prompt("Again.").call("c1", "Exit code: 0")

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == [("web_search", "web_search"), ("shell",)]
    assert ok(runs[0]) == [True, False]


def test_codex_dynamic_tool_that_failed(tmp_path: Path) -> None:
    session = CodexTurns(tmp_path, SESSION).turn(1, "Try it.")
    session.call("c1", "no such ticket")
    session.item(1, "DynamicToolCall", "c1", tool="ticket", status="failed", success=False)
    session.item(1, "DynamicToolCall", "exec-1", tool="ticket", status="completed")

    [run] = runs_in(tmp_path)

    assert [(call.name, call.ok) for call in run.tool_calls or ()] == [
        ("shell", False),
        ("ticket", True),
    ]


def test_codex_message_that_steers_a_turn_joins_it(tmp_path: Path) -> None:
    session = CodexTurns(tmp_path, SESSION).turn(1, "Try it.")
    session.call("c1", "Exit code: 0")
    item = {"type": "UserMessage", "id": "u9", "content": [{"type": "text", "text": "Quickly."}]}
    session.line("event_msg", type="item_completed", turn_id="turn-1", item=item)
    session.call("c2", "Exit code: 0")

    [run] = runs_in(tmp_path)

    assert len(run.tool_calls or ()) == 2


def test_codex_command_of_the_user_is_no_call(tmp_path: Path) -> None:
    session = CodexTurns(tmp_path, SESSION).turn(1, "Try it.")
    session.call("c1", "Exit code: 0")
    session.item(1, "CommandExecution", "mine", source="userShell", status="failed", exit_code=1)
    session.line("event_msg", type="task_complete", turn_id="turn-1")
    session.line("event_msg", type="task_started", turn_id="turn-2")
    session.item(2, "CommandExecution", "mine2", source="userShell", status="failed", exit_code=1)

    [run] = runs_in(tmp_path)

    assert ok(run) == [True]


def test_codex_turn_that_was_rolled_back_was_worked_on(tmp_path: Path) -> None:
    session = Codex(tmp_path, SESSION).prompt("Try it.").call("c1", "Exit code: 1").tokens(1)
    session.line("event_msg", type="thread_rolled_back", num_turns=1)
    session.prompt("Otherwise.").call("c2", "Exit code: 0").tokens(2)

    runs = in_order(tmp_path)

    assert ([ok(run) for run in runs], [run.input_tokens for run in runs]) == (
        [[False], [True]],
        [100, 100],
    )


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("interrupted", Outcome.CANCELLED), ("review_ended", Outcome.COMPLETED)],
)
def test_codex_turn_that_was_aborted(tmp_path: Path, reason: str, outcome: Outcome) -> None:
    session = CodexTurns(tmp_path, SESSION).turn(1, "Try it.")
    session.call("c1", "Exit code: 0")
    session.line("event_msg", type="turn_aborted", turn_id="turn-1", reason=reason)

    [run] = runs_in(tmp_path)

    assert run.outcome is outcome


@pytest.mark.parametrize(
    ("output", "ends"),
    [
        ("exec command rejected by user", []),
        ("patch rejected by user", []),
        ("patch rejected: writing outside of the project", []),
        ({"content": "patch rejected by user", "success": False}, []),
        ('err: "user rejected MCP tool call"', []),
        ("Command blocked by PreToolUse hook: no. Command: git push", []),
        ('err: "tool call error: tool call failed for `ops/status`"', [False]),
        ('{"content":[{"type":"text","text":"no host"}],"isError":true}', [False]),
        ('{"content":[{"type":"text","text":"an error"}],"isError":false}', [True]),
        ({"content": "no such program", "success": False}, [False]),
        ([{"type": "input_image", "image_url": "data:"}], [True]),
        ("aborted", [True]),
        ("aborted transactions: 7", [True]),
    ],
)
def test_codex_outputs_of_releases_without_items(
    tmp_path: Path, output: object, ends: list[bool]
) -> None:
    session = Codex(tmp_path, SESSION).prompt("Try it.")
    session.line("response_item", type="function_call", name="f", call_id="c1", arguments="{}")
    session.line("response_item", type="function_call_output", call_id="c1", output=output)

    [run] = runs_in(tmp_path)

    assert ok(run) == ends
    assert (run.outcome is Outcome.CANCELLED) is (output == "aborted")


def test_codex_calls_that_a_provider_numbers_anew_count_each(tmp_path: Path) -> None:
    for number in range(2):
        session = Codex(tmp_path, f"{number}{SESSION[1:]}", begin=100 * number)
        session.line("turn_context", model="m").prompt("Try it.")
        session.call("call_0", "Exit code: 1").call("call_0", "Exit code: 0")

    assert [ok(run) for run in in_order(tmp_path)] == [[False, True], [False, True]]


def test_codex_agent_whose_rollout_is_gone_leaves_the_path_unknown(tmp_path: Path) -> None:
    session = Codex(tmp_path, SESSION).prompt("Have it tested.").tokens(1)
    session.line("response_item", type="function_call", name="spawn_agent", call_id="c1")
    output = json.dumps({"agent_id": "22222222" + SESSION[8:]})
    session.line("response_item", type="function_call_output", call_id="c1", output=output)

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (None, None)


def test_codex_agent_that_is_asked_again_works_for_each_prompt(tmp_path: Path) -> None:
    agent = "22222222" + SESSION[8:]
    session = Codex(tmp_path, SESSION)
    inner = Codex(tmp_path, agent, begin=3)
    inner.records[0]["payload"]["parent_thread_id"] = SESSION
    for number, (name, given) in enumerate([("spawn_agent", "message"), ("send_input", "id")]):
        session.records += [session.records[0]] * 4
        session.prompt("Have it tested.").tokens(number + 1)
        asked = {"name": name, "call_id": f"c{number}", "arguments": json.dumps({given: agent})}
        session.line("response_item", type="function_call", **asked)
        output = json.dumps({"agent_id": agent})
        session.line(
            "response_item", type="function_call_output", call_id=f"c{number}", output=output
        )
        inner.records += [inner.records[0]] * (len(session.records) - len(inner.records) - 3)
        inner.prompt("Test it.").call(f"d{number}", "Exit code: 1").tokens(number + 1)

    runs = in_order(tmp_path)

    assert [sorted(run.path or ()) for run in runs] == [
        ["shell", "spawn_agent"],
        ["send_input", "shell"],
    ]
    assert [run.input_tokens for run in runs] == [200, 200]


@pytest.mark.parametrize(
    "ends",
    [
        {"type": "exec_command_end", "exit_code": -1, "status": "declined"},
        {"type": "patch_apply_end", "success": False, "status": "declined"},
        {"type": "mcp_tool_call_end", "result": {"Err": "user rejected MCP tool call"}},
        {
            "type": "item_completed",
            "item": {
                "type": "McpToolCall",
                "id": "c1",
                "status": "failed",
                "error": {"message": "user rejected MCP tool call"},
            },
        },
    ],
)
def test_codex_events_of_calls_that_were_refused(tmp_path: Path, ends: dict[str, Any]) -> None:
    session = Codex(tmp_path, SESSION).prompt("Try it.")
    session.line("response_item", type="function_call", name="f", call_id="c1", arguments="{}")
    session.line("event_msg", call_id="c1", **ends)
    session.line("response_item", type="function_call_output", call_id="c1", output="no")

    [run] = runs_in(tmp_path)

    assert ok(run) == []


# --- Gemini CLI -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "is_step"),
    [
        ("[Operation Cancelled] Reason: User denied execution.", False),
        ("[Operation Cancelled] Reason: User did not allow tool call", False),
        ("[Operation Cancelled] Reason: User cancelled operation", False),
        ("[Operation Cancelled] Reason: Operation cancelled by user", True),
    ],
)
def test_gemini_call_that_a_person_denied_is_no_step(
    tmp_path: Path, output: str, is_step: bool
) -> None:
    gemini(tmp_path, [GEMINI_PROMPT, gemini_call("write_file", output, status="cancelled")])

    [run] = runs_in(tmp_path)

    assert run.path == (("write_file",) if is_step else ())
    assert (run.outcome is Outcome.CANCELLED) is is_step


def test_gemini_messages_of_the_program_and_rewinds_are_no_work(tmp_path: Path) -> None:
    """A message is written again when its calls are known, and once more when it has tokens."""
    answer = {**gemini_call("read_file", "x"), "id": "a1"}
    late: dict[str, Any] = {**answer, "tokens": None, "toolCalls": []}
    gemini(
        tmp_path,
        [
            GEMINI_PROMPT,
            late,
            {**late, "tokens": TOKENS},
            answer,
            {"type": "info", "content": "Update available."},
            {"type": "error", "content": "No network."},
            {"$rewindTo": "m0"},
            {"type": "user", "content": "Otherwise.", "displayContent": "Otherwise."},
            {**gemini_call("glob", "y", id="c2"), "content": "Done."},
        ],
    )

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == [("read_file",), ("glob",)]
    assert [run.input_tokens for run in runs] == [90, 90]


PICTURE = {"inlineData": {"mimeType": "image/png", "data": "AA"}}


def test_gemini_picture_alone_is_a_prompt_and_one_that_a_tool_returned_is_none(
    tmp_path: Path,
) -> None:
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "x"}}}
    answer = {**gemini_call("read_file", "x"), "content": "A cat."}
    returned: dict[str, Any] = {"type": "user", "content": [response, PICTURE]}
    gemini(tmp_path, [{"type": "user", "content": [PICTURE]}, answer, returned])

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (("read_file",), 90)


EDITOR = (
    "Here is the user's editor context as a JSON object. This is for your information only.\n{}"
)
CHANGES = "Here is a summary of changes in the user's editor context, in JSON format. {}"


@pytest.mark.parametrize(
    "added",
    [
        "<hook_context>Be short.</hook_context>",
        "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:",
        EDITOR,
        CHANGES,
        "User has manually exited Plan Mode. Switching to Default mode.",
        "- **Workspace Directories:**\n  - /home/me/shop",
    ],
)
@pytest.mark.parametrize("is_own_message", [True, False])
def test_gemini_texts_that_the_program_adds_are_no_prompts(
    tmp_path: Path, added: str, is_own_message: bool
) -> None:
    parts = [{"text": added}, {"text": "Run it."}]
    messages: list[dict[str, Any]] = [{"type": "user", "content": parts}]
    if is_own_message:
        messages = [{"type": "user", "content": [part]} for part in parts]
    answer = {**gemini_call("read_file", "x"), "content": "Done."}
    gemini(tmp_path, [*messages, answer, {"type": "user", "content": [{"text": added}]}])

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (("read_file",), 90)


def test_gemini_prompt_behind_the_text_of_a_hook_is_one(tmp_path: Path) -> None:
    said = "<hook_context>Be short.</hook_context>\n\nRun it."
    gemini(tmp_path, [{"type": "user", "content": said}, gemini_call("read_file", "x")])

    [run] = runs_in(tmp_path)

    assert run.path == ("read_file",)


def gemini_document(path: Path, session: str, second: float, *messages: dict[str, Any]) -> None:
    """Write a session as one indented document; `second`: when it begins."""
    timed = [
        {"id": f"{session}{number}", "timestamp": at(second + number), **each}
        for number, each in enumerate(messages)
    ]
    header = {"sessionId": session, "projectHash": "p", "startTime": at(second)}
    kind = "subagent" if path.parent.name != "chats" else "main"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**header, "messages": timed, "kind": kind}, indent=2))


def test_gemini_agents_of_documents_work_for_the_prompt_in_which_they_began(
    tmp_path: Path,
) -> None:
    chats = tmp_path / ".gemini/tmp/shop/chats"
    done = {"type": "gemini", "content": "Done.", "tokens": TOKENS, "model": "m"}
    asked = [GEMINI_PROMPT, done, {**GEMINI_PROMPT, "content": "Again."}, done]
    gemini_document(chats / "session-1.json", "s1", 0, *asked)
    work = gemini_call("grep_search", "x", id="c7")
    gemini_document(chats / "s1/agent-7.json", "agent-7", 2.5, GEMINI_PROMPT, work)

    runs = in_order(tmp_path)

    assert [run.path for run in runs] == [(), ("grep_search",)]
    assert [run.input_tokens for run in runs] == [90, 180]


# --- Qwen Code ------------------------------------------------------------------------------------


def qwen_file(home: Path, records: Sequence[dict[str, Any]]) -> None:
    common = {"sessionId": SESSION, "cwd": "/home/me/shop", "version": "0.25.0"}
    timed = [
        {"uuid": f"q{number}", "timestamp": at(number), **common, **each}
        for number, each in enumerate(records)
    ]
    write(home / ".qwen/projects/-home-me-shop/chats" / f"{SESSION}.jsonl", timed)


def qwen_said(said: str, subtype: str | None = None) -> dict[str, Any]:
    named = {} if subtype is None else {"subtype": subtype}
    return {"type": "user", **named, "message": {"role": "user", "parts": [{"text": said}]}}


def qwen_answer(call_id: str | None = None) -> dict[str, Any]:
    called: dict[str, Any] = {"id": call_id, "name": "read_file", "args": {}}
    usage = {"promptTokenCount": 90, "candidatesTokenCount": 10}
    parts = [{"text": "Done."} if call_id is None else {"functionCall": called}]
    return {"type": "assistant", "message": {"parts": parts}, "usageMetadata": usage}


def qwen_result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "toolCallResult": {"callId": call_id, "status": "success"}}


def qwen_error(suffix: str) -> dict[str, Any]:
    event = {"event.name": "qwen-code.api_error", "prompt_id": f"{SESSION}{suffix}"}
    payload = {"uiEvent": event}
    return {"type": "system", "subtype": "ui_telemetry", "systemPayload": payload}


def test_qwen_message_that_is_typed_during_a_turn_joins_it(tmp_path: Path) -> None:
    work = [qwen_answer("c1"), qwen_said("Quickly.", "mid_turn_user_message"), qwen_result("c1")]
    qwen_file(tmp_path, [qwen_said("Run it."), *work, qwen_answer()])

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (("read_file",), 180)


def test_qwen_notification_that_is_written_twice_is_one_turn(tmp_path: Path) -> None:
    told = qwen_said("<task-notification>done</task-notification>", "notification")
    turn = [told, {**told, "deliveredTurn": True}, qwen_answer()]
    qwen_file(tmp_path, [qwen_said("Run it."), qwen_answer(), *turn])

    assert [run.input_tokens for run in in_order(tmp_path)] == [90, 90]


@pytest.mark.parametrize(
    ("suffix", "answers", "failed"),
    [
        ("########0", 0, True),
        ("########0", 1, False),
        ("#Explore-call_1#0", 0, False),
    ],
)
def test_qwen_prompt_fails_where_its_last_request_did(
    tmp_path: Path, suffix: str, answers: int, failed: bool
) -> None:
    work = [qwen_answer("c1"), qwen_result("c1"), qwen_error(suffix), qwen_error(suffix)]
    qwen_file(tmp_path, [qwen_said("Run it."), *work, *[qwen_answer()] * answers])

    [run] = runs_in(tmp_path)

    assert (run.path, run.ended_in_error) == (("read_file",), failed)


def test_qwen_picture_alone_is_a_prompt(tmp_path: Path) -> None:
    shown: dict[str, Any] = {"type": "user", "message": {"role": "user", "parts": [PICTURE]}}
    qwen_file(tmp_path, [qwen_said("Hello."), qwen_answer(), shown, qwen_answer()])

    assert [run.input_tokens for run in in_order(tmp_path)] == [90, 90]


def test_qwen_agent_without_a_file_leaves_the_path_unknown(tmp_path: Path) -> None:
    shown = {"type": "task_execution", "subagentName": "Explore", "status": "completed"}
    result = qwen_result("c1")
    result["toolCallResult"]["resultDisplay"] = shown
    qwen_file(tmp_path, [qwen_said("Have it read."), qwen_answer("c1"), result, qwen_answer()])

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (None, None)


# --- Copilot CLI ----------------------------------------------------------------------------------


@pytest.mark.parametrize("goes_on", [True, False])
def test_copilot_error_that_it_overcame_does_not_fail_the_prompt(
    tmp_path: Path, goes_on: bool
) -> None:
    events: list[tuple[str, dict[str, object]]] = [
        ("session.start", {"sessionId": SESSION, "copilotVersion": "1.0.110"}),
        ("user.message", {"content": "Build it."}),
        ("session.error", {"errorType": "rate_limit", "message": "slow down"}),
        ("assistant.message", {"model": "m", "content": "Done.", "toolRequests": []}),
    ]
    lines = [
        {"type": kind, "id": f"e{number}", "timestamp": at(number), "parentId": None, "data": data}
        for number, (kind, data) in enumerate(events if goes_on else events[:3])
    ]
    write(tmp_path / ".copilot/session-state" / SESSION / "events.jsonl", lines)

    [run] = runs_in(tmp_path)

    assert run.ended_in_error is not goes_on


def copilot(home: Path, *events: tuple[str, dict[str, Any]]) -> None:
    started = ("session.start", {"sessionId": SESSION, "selectedModel": "m1"})
    lines = [
        {"type": kind, "id": f"e{number}", "timestamp": at(number), "parentId": None, "data": data}
        for number, (kind, data) in enumerate([started, *events])
    ]
    write(home / ".copilot/session-state" / SESSION / "events.jsonl", lines)


def copilot_answer(name: str, *calls: str, **more: object) -> tuple[str, dict[str, Any]]:
    asked = [{"toolCallId": call, "name": "bash"} for call in calls]
    return "assistant.message", {"apiCallId": name, "toolRequests": asked, **more}


def copilot_done(call: str) -> tuple[str, dict[str, Any]]:
    return "tool.execution_complete", {"toolCallId": call, "success": True}


def copilot_usage(spent: int) -> tuple[str, dict[str, Any]]:
    usage = {"model": "m2", "inputTokens": spent, "outputTokens": spent // 10}
    return "session.usage_record", {"usage": usage}


def test_copilot_answers_of_releases_without_usage_are_model_calls(tmp_path: Path) -> None:
    """A later release goes on in the same file: its usage records stand for the answers then."""
    copilot(
        tmp_path,
        ("user.message", {"content": "Build it."}),
        copilot_answer("a1", outputTokens=40),
        copilot_answer("a1", "c1", outputTokens=40),
        copilot_done("c1"),
        copilot_answer("a2", outputTokens=30),
        ("user.message", {"content": "Again."}),
        copilot_answer("a3", "c2", outputTokens=20),
        copilot_usage(200),
        copilot_done("c2"),
        copilot_answer("a4", outputTokens=30),
        copilot_usage(300),
    )
    events = next(tmp_path.rglob("events.jsonl"))
    shutil.copytree(events.parent, events.parent.with_name("a-fork"))

    first, second = in_order(tmp_path)

    assert [call.model for call in first.model_calls] == ["m1", "m1"]
    assert (first.input_tokens, first.output_tokens) == (None, 70)
    assert [call.model for call in second.model_calls] == ["m2", "m2"]
    assert (second.input_tokens, second.output_tokens) == (500, 50)


def test_copilot_calls_that_a_provider_numbers_anew_count_each(tmp_path: Path) -> None:
    asked = ("tool.execution_start", {"toolCallId": "call_0", "toolName": "bash"})
    copilot(
        tmp_path,
        ("user.message", {"content": "Build it."}),
        *(copilot_answer("a1", "call_0"), asked, copilot_done("call_0")),
        *(copilot_answer("a2", "call_0"), asked, copilot_done("call_0")),
        ("user.message", {"content": "Again."}),
        *(copilot_answer("a3", "call_0"), asked, copilot_done("call_0")),
    )

    assert [ok(run) for run in in_order(tmp_path)] == [[True, True], [True]]


@pytest.mark.parametrize(
    "more",
    [
        {"delivery": "steering"},
        {"delivery": "idle", "isAutopilotContinuation": True},
        {"delivery": "idle", "source": "skill-pdf"},
    ],
)
def test_copilot_message_that_begins_no_turn_of_a_person_joins_the_one_that_goes_on(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    copilot(
        tmp_path,
        ("user.message", {"content": "Build it.", "delivery": "idle"}),
        copilot_answer("a1", "c1"),
        copilot_usage(100),
        ("user.message", {"content": "Quickly.", **more}),
        copilot_done("c1"),
        copilot_answer("a2"),
        copilot_usage(200),
        ("user.message", {"content": "Test it.", "delivery": "queued"}),
        copilot_answer("a3", "c2"),
        copilot_done("c2"),
        copilot_usage(300),
    )

    runs = in_order(tmp_path)

    assert [(run.path, run.input_tokens) for run in runs] == [(("bash",), 300), (("bash",), 300)]


# --- opencode -------------------------------------------------------------------------------------


class OpenCode:
    """Writes a session as files."""

    def __init__(self, home: Path) -> None:
        self.storage = home / ".local/share/opencode/storage"
        self.count = 0
        facts = {"id": "ses_1", "projectID": "p", "directory": "/home/me/shop", "version": "1.3.0"}
        self.put("session/p/ses_1.json", {**facts, "time": {"created": 1_772_359_200_000}})

    def put(self, path: str, value: dict[str, Any]) -> None:
        file = self.storage / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))

    def message(self, role: str, *parts: dict[str, Any], **more: object) -> str:
        self.count += 1
        name = f"msg_{self.count}"
        times = {"created": 1_772_359_200_000 + self.count * 1_000}
        facts = {"id": name, "role": role, "modelID": "m", "time": times, **more}
        self.put(f"message/ses_1/{name}.json", facts)
        for number, part in enumerate(parts):
            self.put(f"part/{name}/prt_{number}.json", {"id": f"{name}_{number}", **part})
        return name


SPENT = {"type": "step-finish", "tokens": {"input": 90, "output": 10}}


def open_call(name: str, status: str = "completed", **state: object) -> dict[str, Any]:
    times = {"start": 1_772_359_300_000, "end": 1_772_359_300_001}
    given: dict[str, object] = {"status": status, "time": times, **state}
    return {"type": "tool", "callID": f"call_{name}", "tool": name, "state": given}


def test_opencode_command_of_the_user_is_no_call(tmp_path: Path) -> None:
    session = OpenCode(tmp_path)
    session.message("user", {"type": "text", "text": "Make it faster."})
    session.message("assistant", open_call("read"), SPENT)
    told = {"type": "text", "synthetic": True}
    told["text"] = "The following tool was executed by the user"
    mine = session.message("user", told)
    session.message("assistant", open_call("bash", metadata={"exit": 1}), parentID=mine)

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (("read",), 90)


def test_opencode_question_that_was_dismissed_is_no_step(tmp_path: Path) -> None:
    session = OpenCode(tmp_path)
    session.message("user", {"type": "text", "text": "Make it faster."})
    asked = open_call("question", "error", error="The user dismissed this question")
    missed = open_call("edit", "error", error="oldString not found in content")
    session.message("assistant", asked, missed, SPENT)

    [run] = runs_in(tmp_path)

    assert [(call.name, call.ok) for call in run.tool_calls or ()] == [("edit", False)]


def test_opencode_error_that_it_overcame_does_not_fail_the_prompt(tmp_path: Path) -> None:
    session = OpenCode(tmp_path)
    session.message("user", {"type": "text", "text": "Make it faster."})
    session.message("assistant", error={"name": "ContextOverflowError"})
    session.message("assistant", SPENT)
    session.message("user", {"type": "text", "text": "And smaller."})
    session.message("assistant", error={"name": "APIError"})

    assert [run.ended_in_error for run in in_order(tmp_path)] == [False, True]


@pytest.mark.parametrize(
    ("error", "cancelled"),
    [("Tool execution aborted", True), ("Cancelled", True), ("Cancelled by the server", False)],
)
def test_opencode_call_that_was_stopped_did_not_fail(
    tmp_path: Path, error: str, cancelled: bool
) -> None:
    session = OpenCode(tmp_path)
    session.message("user", {"type": "subtask", "prompt": "x", "agent": "explore"})
    session.message("assistant", open_call("task", "error", error=error), SPENT)

    [run] = runs_in(tmp_path)

    assert ok(run) == [cancelled]
    assert (run.outcome is Outcome.CANCELLED) is cancelled


def test_opencode_agent_whose_session_is_gone_leaves_the_path_unknown(tmp_path: Path) -> None:
    session = OpenCode(tmp_path)
    session.message("user", {"type": "text", "text": "Have it read."})
    session.message("assistant", open_call("task", metadata={"sessionId": "ses_2"}), SPENT)

    [run] = runs_in(tmp_path)

    assert (run.path, run.input_tokens) == (None, None)


@pytest.mark.parametrize("is_whole", [True, False])
def test_opencode_session_that_was_exported(tmp_path: Path, is_whole: bool) -> None:
    """What is in the folder of sessions too counts once."""
    home = tmp_path / "home"
    session = OpenCode(home)
    user = {"type": "text", "text": "Make it faster."}
    session.message("user", user)
    session.message("assistant", {"type": "step-start"}, open_call("read"), SPENT)
    document = {
        "info": json.loads((session.storage / "session/p/ses_1.json").read_text()),
        "messages": [
            {
                "info": json.loads(file.read_text()),
                "parts": [
                    json.loads(part.read_text())
                    for part in sorted((session.storage / "part" / file.stem).iterdir())
                ],
            }
            for file in sorted((session.storage / "message/ses_1").iterdir())
        ],
    }
    exported = tmp_path / "exported.txt"
    text = json.dumps(document, indent=2)
    exported.write_text(text if is_whole else text[:-50])

    runs = [(run.path, run.input_tokens) for run in in_order(exported)]

    assert runs == ([(("read",), 90)] if is_whole else [])
    assert [(run.path, run.input_tokens) for run in in_order(home, exported)] == [(("read",), 90)]


@pytest.mark.parametrize("odd", [[1], {"a": 1}, 10**30])
def test_values_of_other_types_cost_only_their_record(tmp_path: Path, odd: object) -> None:
    session = Codex(tmp_path, SESSION).line("event_msg", type=odd)
    session.prompt("Try it.").call("c1", "Exit code: 0")
    session.prompt("Again.").records[-1]["payload"]["kind"] = odd
    write(session.path, session.records)
    gemini(tmp_path, [GEMINI_PROMPT, {"type": odd}, gemini_call("glob", "x")])
    failed: dict[str, Any] = {"toolCallId": "c1", "success": False, "error": {"code": odd}}
    asked = copilot_answer("a1", "c1")
    copilot(
        tmp_path, ("user.message", {"content": "x"}), asked, ("tool.execution_complete", failed)
    )
    opened = OpenCode(tmp_path)
    opened.message("user", {"type": "text", "text": "Make it faster."}, {"type": odd})
    opened.message("assistant", open_call("read", time={"start": odd, "end": odd}), parentID=odd)

    runs = runs_in(tmp_path)

    assert sorted(run.key.agent for run in runs) == [
        "codex",
        "codex",
        "copilot-cli",
        "gemini-cli",
        "opencode",
    ]
    assert sum(len(run.path or ()) for run in runs) == 4
