from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import runs, spoil

SPANS = runs("search reply", "fetch fetch", failed="fetch", task="refund", session="s")


def test_a_run_is_one_object_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", SPANS[::-1])
    done = call(capsys, "runs", path)
    first, second = map(json.loads, done.out.splitlines())

    assert (done.code, done.err) == (0, "")
    assert list(first) == list(second)
    assert first == {
        "run_id": first["run_id"],
        "trace_id": "00000000000000000000000000000001",
        "root_span_id": "0000000000000001",
        "service_namespace": None,
        "service": "shop",
        "environment": "test",
        "agent": "support",
        "session_id": "s",
        "task_id": "refund",
        "trial": None,
        "condition": "baseline",
        "nested": False,
        "implicit": False,
        "incomplete": False,
        "start": "2023-11-14T22:15:00.000000000Z",
        "duration_s": 3.0,
        "path": ["search", "reply"],
        "tools": "observed",
        "tool_calls": [
            {"name": name, "ok": True, "retry": False, "repeat": False, "agent": "support"}
            for name in ("search", "reply")
        ],
        "compressions": [],
        "model_calls": 0,
        "tokens": {"input": None, "output": None},
        "token_pressure": None,
        "cost": None,
        "retries": 0,
        "longest_retry_chain": 0,
        "outcome": "completed",
        "outcome_source": "end",
        "ended_in_error": False,
        "closed_by": "end_of_input",
        "fingerprints": {"framework": ["test 1"]},
    }
    assert [(call["ok"], call["retry"]) for call in second["tool_calls"]] == [
        (False, False),
        (False, True),
    ]


def test_run_is_printed_once_no_later_line_names_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    early = runs("search reply")
    late = runs("fetch", first=2)
    path = write_otlp(tmp_path / "spans.jsonl", [*early[:1], *late, *early[1:]], batch=1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))

    def paths(file: Path | str) -> list[list[str]]:
        return [json.loads(line)["path"] for line in call(capsys, "runs", file).out.splitlines()]

    assert paths(path) == [["fetch"], ["search", "reply"]]
    assert paths("-") == [["search", "reply"], ["fetch"]]


def test_packed_files_and_standard_input_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = write_otlp(tmp_path / "a.jsonl", SPANS)
    packed = write_otlp(tmp_path / "b.jsonl.gz", SPANS)
    expected = call(capsys, "runs", plain).out
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(plain.read_bytes())))
    )

    assert len(expected.splitlines()) == 2
    assert call(capsys, "runs", packed).out == expected
    assert call(capsys, "runs", "-").out == expected


def test_what_cannot_be_read_is_named_by_file_line_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = spoil(
        write_otlp(tmp_path / "spans.jsonl", SPANS), "nonsense", *['{"resourceSpans": 7}'] * 30
    )
    done = call(capsys, "runs", path)

    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert f"{path}:2: json: not JSON" in done.err
    assert f"{path}:3: shape: " in done.err
    assert f"{path}:25:" not in done.err
    assert "31 lines or spans could not be read (30 shape, 1 json)." in done.err


@pytest.mark.parametrize("content", [b"nonsense\n", b"\x00\x01\x02\xff" * 50])
def test_a_file_of_no_known_kind_is_named_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_bytes(content)
    done = call(capsys, "runs", path)

    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert line.startswith(f"{path}: kind: this is ")


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\x00garbage", b'{"resourceSpans": ['])
def test_where_nothing_can_be_read_it_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_bytes(content)
    done = call(capsys, "runs", path)

    assert (done.code, done.out) == (2, "")
    assert "nothing could be read" in done.err
    assert f"{path}:1: " in done.err


def test_an_empty_file_has_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b"")

    assert call(capsys, "runs", path) == (0, "", "")


def test_a_file_that_is_not_there_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "runs", tmp_path / "nothing.jsonl")

    assert done.code == 2
    assert (
        "nothing.jsonl: cannot be read (No such file or directory); give a file of "
        "OTLP-JSON lines, or -."
    ) in done.err


def test_runs_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", [*SPANS, *runs("a", first=3, agent="refunds")])

    assert len(call(capsys, "runs", path, "--agent", "ref*").out.splitlines()) == 1
    assert (
        len(call(capsys, "runs", path, "--agent", "refunds", "--agent", "support").out.splitlines())
        == 3
    )
    assert len(call(capsys, "runs", path, "--since", "2023-11-14T22:16Z").out.splitlines()) == 2
    assert call(capsys, "runs", path, "--since", "1h").out == ""


def test_evidence_that_was_refused_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_otlp(
        tmp_path / "spans.jsonl", runs("a", notes={"reliability.run.confidence": 1.7})
    )

    assert (
        call(capsys, "runs", path).err
        == "reliability.run.confidence: refused 1 time (not a number from 0 to 1).\n"
    )
