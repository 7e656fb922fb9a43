"""What the calls of a coding agent do: read, edit, test; and what a prompt's calls add up to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.coding import (
    EDITS,
    READS,
    TESTS,
    CodingTotals,
    activities,
    coding_totals,
    of_command,
)
from otel_reliability.model.run import Run, ToolCall
from otel_reliability.testing import call, run

HASHER = Hasher(b"key")


def made(name: str, command: str | None = None, *, ok: bool = True) -> ToolCall:
    """Return a call as it is read: its command is in the mark of its effect alone."""
    arguments = None if command is None else {"command": command}
    effect = HASHER.call(name, None, arguments, failed=not ok).effect
    return call(name, ok=ok, effect=effect)


def prompt(*calls: ToolCall) -> Run:
    return replace(run([]), tool_calls=calls)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *[(name, READS) for name in ("Read", "read_file", "mcp__fs__read_file", "view", "Grep")],
        *[(name, READS) for name in ("grep_search", "search_file_content", "Glob", "open")],
        *[(name, EDITS) for name in ("Edit", "MultiEdit", "Write", "NotebookEdit", "replace")],
        *[(name, EDITS) for name in ("apply_patch", "write_file", "str_replace_editor", "create")],
        *[(name, 0) for name in ("Bash", "get_order", "web_search", "Task", "TodoWrite", "search")],
    ],
)
def test_tool_name_says_what_a_call_does(name: str, found: int) -> None:
    assert activities(made(name)) == found


@pytest.mark.parametrize(
    ("command", "found"),
    [
        *[(one, READS) for one in ("cat a.py", "sed -n '1,9p' a.py", "rg -n x . | head -5")],
        *[(one, READS) for one in ("cd src && ls -l", "git diff --stat", "cat a 2>/dev/null")],
        *[(one, EDITS) for one in ("sed -i s/a/b/ c.py", "perl -pi -e s/a/b/ c", "git apply x")],
        *[(one, EDITS) for one in ("cat > a.py <<'EOF'\npytest\nEOF", "echo 1 >> a", "ls | tee a")],
        ("apply_patch <<'EOF'\n*** Begin Patch\n+pytest\nEOF", EDITS),
        *[(one, TESTS) for one in ("pytest -q", "python -m pytest tests", "uv run pytest -x")],
        *[(one, TESTS) for one in ("npm test", "npm run test:unit", "yarn test", "npx jest a")],
        *[(one, TESTS) for one in ("go test ./...", "cargo test", "make test", "mvn -q verify")],
        *[(one, TESTS) for one in ("python3 tests/test_core.py", "node spec/queue.spec.js")],
        *[(one, TESTS) for one in ("./run_tests.sh", "timeout 60 ./gradlew :app:test", "tox")],
        *[(one, TESTS) for one in ("CI=1 poetry run pytest", "cd app && bundle exec rspec")],
        ("sed -i s/a/b/ c.py && pytest", EDITS | TESTS),
        ("cat tests/test_core.py", READS),
        *[(one, 0) for one in ("git push", "npm install test-lib", "sh bin/sync.sh", "make build")],
        *[(one, 0) for one in ("cat a && rm a", "python -c 'test'", "cat a > b & " + "x" * 5000)],
        ("echo done", 0),
    ],
)
def test_command_says_what_a_call_does(command: str, found: int) -> None:
    assert of_command(command) == found
    assert activities(made("Bash", command)) == found
    assert activities(made("deploy", command)) == 0


def test_editor_reads_or_changes_by_its_command() -> None:
    assert activities(made("str_replace_editor", "view")) == READS
    assert activities(made("str_replace_editor", "str_replace")) == EDITS


def test_command_stays_no_text() -> None:
    effect = HASHER.call("Bash", None, {"command": "pytest secret"}, failed=False).effect
    assert effect is not None
    assert len(effect) == 9


def test_other_agent_has_no_totals() -> None:
    assert coding_totals(prompt(call("get_order"), call("read"), made("bash", "cat a"))) is None
    assert coding_totals(prompt()) is None
    assert coding_totals(run(None)) is None


def test_prompt_adds_up() -> None:
    calls = (
        made("Grep"),
        made("Bash", "cat a.py"),
        made("Edit", ok=False),
        made("Read"),
        made("Edit"),
        made("Bash", "npm test"),
    )
    assert coding_totals(prompt(*calls)) == CodingTotals(
        prompts=1,
        edits=2,
        failed_edits=1,
        editing_prompts=1,
        reads_before_edit=2,
        testable_prompts=1,
        tested_prompts=1,
    )


def test_tests_before_the_last_edit_do_not_count() -> None:
    found = coding_totals(prompt(made("Edit"), made("Bash", "npm test"), made("Edit")))
    assert found is not None
    assert (found.testable_prompts, found.tested_prompts) == (1, 0)


def test_hidden_command_leaves_tests_unknown() -> None:
    found = coding_totals(prompt(made("Edit"), made("Bash")))
    assert found is not None
    assert (found.edits, found.testable_prompts) == (1, 0)


def test_failed_edit_alone_has_nothing_to_test() -> None:
    found = coding_totals(prompt(made("Edit", ok=False), made("Bash", "npm test")))
    assert found is not None
    assert (found.failed_edits, found.testable_prompts) == (1, 0)
