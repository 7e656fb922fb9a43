"""An agent that fails on one task, or one kind of request, only: the report says which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.report import words
from tests.report.build import agent_of, printed, report, run_spans
from tests.report.test_shift import erring


def on_three_tasks(*, failing: str, by_error: bool = False) -> list[RawSpan]:
    """60 runs, of which those of one task fail in four of five cases."""
    found: list[RawSpan] = []
    for number in range(1, 61):
        task = ("refund", "ship", "faq")[number % 3]
        fails = task == failing and number % 5 > 0
        success = None if by_error else not fails
        root, *steps = run_spans(number, f"lookup {task}", task=task, success=success)
        found += [replace(root, status=STATUS_ERROR) if by_error and fails else root, *steps]
    return found


def test_the_task_that_fails_is_named_first(tmp_path: Path) -> None:
    found = report(tmp_path, on_three_tasks(failing="refund"))
    [agent] = found.agents
    [task] = agent.why

    assert task.sentence == (
        "runs of task refund fail in 80 % (16 of 20 runs) against 0 % (0 of 40)"
    )
    assert (task.feature, task.names, task.runs) == ("task", ("refund",), (20, 40))
    assert len(task.traces) == 3
    assert "nothing else found that they could show" in agent.why_note
    page = " ".join(printed(found, details=False).split())
    assert f"{task.sentence} (p ≤ 0.001)" in page


def test_tasks_that_end_in_errors_are_named_where_outcomes_are_unknown(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, on_three_tasks(failing="ship", by_error=True))

    assert agent.why[0].sentence.startswith("runs of task ship end in an error in 80 %")


def asking(*, failing: str) -> list[RawSpan]:
    """100 runs of one path, of which those of one kind of request fail in four of five cases."""
    texts = {
        "refund": "please refund my order and send the money back",
        "weather": "what is the weather tomorrow",
        "reset": "reset the password of my account",
        "parcel": "where is my parcel, has it been shipped",
    }
    found: list[RawSpan] = []
    for number in range(1, 101):
        kind, text = list(texts.items())[number % 4]
        fails = (kind == failing and number % 5 > 0) or number % 25 == 0
        said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])
        notes = {"gen_ai.input.messages": said}
        found += run_spans(number, "search reply", success=not fails, notes=notes)
    return found


def test_the_kind_of_request_that_fails_is_named(tmp_path: Path) -> None:
    """Its runs take the path of all others, so nothing that they do distinguishes them."""
    agent = agent_of(tmp_path, asking(failing="refund"))
    [kind] = agent.why
    [group] = [one for one in agent.request_groups if one.id == kind.names[0]]

    assert kind.sentence == (
        f"requests of kind {group.id} fail in 84 % (21 of 25 runs) against 4 % (3 of 75)"
    )
    assert group.success_rate == pytest.approx(0.16)
    assert kind.feature == "requests"
    assert agent_of(tmp_path, asking(failing="")).why == []


def test_no_task_is_named_where_chance_suffices(tmp_path: Path) -> None:
    spread = on_three_tasks(failing="")
    failing = erring([at % 4 == 0 for at in range(60)], ["refund", "ship", "faq"] * 20)

    assert [one for one in agent_of(tmp_path, spread).why if one.feature == "task"] == []
    assert [one for one in agent_of(tmp_path, failing).why if one.feature == "task"] == []


def test_the_same_path_is_said_to_be_for_the_same_input_where_tasks_differ(tmp_path: Path) -> None:
    varied = agent_of(tmp_path, on_three_tasks(failing=""))
    alone = agent_of(tmp_path, [x for n in range(1, 9) for x in run_spans(n, "a b", task="t")])

    assert "takes the same path for the same input" in words.meaning(varied).lower()
    assert "takes the same path every time" in words.meaning(alone).lower()


def test_an_agent_without_tools_is_not_praised_for_its_paths(tmp_path: Path) -> None:
    talker = agent_of(tmp_path, [x for n in range(1, 9) for x in run_spans(n, "", success=True)])

    assert words.meaning(talker).startswith("No run called a tool, so that all paths are alike")
