from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import ToolSettings
from otel_reliability.model.run import ToolCall
from otel_reliability.model.tools import (
    DEFAULT_RULES,
    ToolRules,
    classified,
    effects_of,
    is_reading,
    only_reads,
    words,
)


def call(name: str, effect: bytes | None = b"1", *, ok: bool = True) -> ToolCall:
    return ToolCall(
        name, ok, False, False, 0, "agent", 0, 1, None, None, effect, ok and classified(name).effect
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("get_order", ("get", "order")),
        ("shop.orders/get-order", ("get", "order")),
        ("mcp__github__create issue", ("create", "issue")),
        ("createIssue2", ("create", "issue2")),
        ("parseJSONBody", ("parse", "json", "body")),
        ("trailing__", ("trailing",)),
        ("", ()),
        ("__", ()),
    ],
)
def test_words_are_those_of_the_last_part(name: str, expected: tuple[str, ...]) -> None:
    assert words(name) == expected


@pytest.mark.parametrize(
    "name",
    ["think", "is_open", "has_seat", "count_rows", "checkStatus", "check", "do_web_search", "Grep"],
)
def test_names_that_read(name: str) -> None:
    assert is_reading(name)
    assert not classified(name).effect


@pytest.mark.parametrize(
    "name",
    [
        "check_in",
        "check_out_guest",
        "book_flight",
        "target_audience",
        "issue_refund",
        "getaway",
        "",
    ],
)
def test_names_that_change_something(name: str) -> None:
    """Anything not known to read changes something; `check in` and `check out` are deeds, words
    count as a whole.
    """
    assert classified(name).effect


@pytest.mark.parametrize("name", ["transfer_to_human", "handoff_billing", "hand_over", "→billing"])
def test_handing_the_work_over_changes_nothing(name: str) -> None:
    assert classified(name).why == "hands the work over"


def test_the_first_rule_that_speaks_decides() -> None:
    """Helpers stand before effects, effects before reads, the user's words before those of the
    name.
    """
    rules = ToolRules(helpers=("a*",), effects=("ab*", "get_*"), reads=("abc", "g*", "send"))
    said = {name: classified(name, rules) for name in ("abc", "get_x", "go", "send")}
    assert [said[name].effect for name in said] == [False, True, False, False]
    assert said["get_x"].why == "tools.effects: get_*"


def test_default_rules_are_those_of_the_settings() -> None:
    settings = ToolSettings()
    assert ToolRules(settings.helpers, settings.effects, settings.reads) == DEFAULT_RULES


def test_effects_are_the_changing_calls_that_did_not_fail() -> None:
    calls = [
        call("get_order"),
        call("cancel", b"7"),
        call("cancel", b"7"),
        call("cancel", b"8", ok=False),
        call("refund", None),
    ]
    assert effects_of(calls) == {("cancel", b"7"), ("refund", None)}


@given(st.text())
def test_the_judgement_is_total(name: str) -> None:
    assert classified(name).why


@pytest.mark.parametrize(
    "name",
    ["open", "goto", "scroll_down", "scroll_up", "ls", "cd", "cat", "head", "tail", "grep", "pwd"],
)
def test_coding_tools_that_only_read(name: str) -> None:
    assert not classified(name).effect
    assert classified("open_ticket").effect
    assert classified("head_hunt").effect


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("ls -la", True),
        ("cd /src && grep -rn foo . | head -20", True),
        ("cat a.txt 2>/dev/null", True),
        ("cat a.txt 2>&1 | tail -3", True),
        ("cd /src && pytest -q", False),
        ("cat > a.py <<EOF", False),
        ("cat $(rm x)", False),
        ("ls\nrm x", False),
        ("grep -q x a || sed -i s/x/y/ a", False),
        ("lsof", False),
        ("", False),
        ("ls " + "x" * 5000, False),
    ],
)
def test_commands_that_only_read(command: str, reads: bool) -> None:
    assert only_reads(command) is reads
