from __future__ import annotations

from pathlib import Path

import pytest

from otel_reliability.errors import ReliabilityError
from otel_reliability.experiments.expectation import Expectation
from otel_reliability.experiments.tasks import Task, read_tasks


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tasks.jsonl", '{"id": 7, "input": "x, y", "expect": "z"}\n\n{"input": "second"}\n'),
        ("tasks.csv", 'id,input,expect\n7,"x, y",z\n,second,\n'),
        ("tasks.yaml", "- {id: 7, input: 'x, y', expect: z}\n- input: second\n"),
    ],
)
def test_each_format_gives_the_same_tasks(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    assert read_tasks(path) == [
        Task("7", "x, y", Expectation("equals", "z")),
        Task("2", "second", None),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tasks.txt", "x", "tasks.txt"),
        ("tasks.jsonl", "", "like"),
        ("tasks.jsonl", "{", "cannot be parsed"),
        ("tasks.jsonl", '{"id": "a"}', "task 1"),
        ("tasks.jsonl", '{"input": "x", "expects": "y"}', "'expects'"),
        ("tasks.jsonl", '{"id": 1, "input": "x"}\n{"id": "1", "input": "y"}', "'1'"),
        ("tasks.jsonl", '{"input": "x", "expect": {"like": "y"}}', "contains"),
        ("tasks.jsonl", '{"input": "x", "expect": {"matches": "("}}', "regular expression"),
        ("tasks.yaml", "input: x", "list"),
    ],
)
def test_what_is_no_task_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(ReliabilityError, match=message.replace("(", "\\(")):
        read_tasks(path)
