from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.measure import Row

WELL = Row("fast", 1.23456, 2.0, "×", (1.1, 1.3), "other")
OVER = Row("slow", 3.0, 2.0, "×", (2.9, 3.1), "other")
FREE = Row("told", 3000.0, None, "µs", (2.0, 4.0), "512 spans")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "results.json"
    monkeypatch.setattr(run, "RESULTS", path)
    return path


def found(monkeypatch: pytest.MonkeyPatch, *rows: Row) -> None:
    monkeypatch.setattr(run, "measured", lambda chosen, console: (list(rows), []))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]


def test_a_whole_run_writes_results(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, WELL, FREE)

    assert run.main([]) == 0
    told = json.loads(results.read_text())
    assert told["rows"][0] == {
        "name": "fast",
        "value": 1.235,
        "at_most": 2.0,
        "unit": "×",
        "spread": [1.1, 1.3],
        "against": "other",
    }
    assert told["machine"]["cores"] >= 1
    assert {"python", "protobuf", "opentelemetry-sdk"} <= set(told["versions"])
    assert "fast" in capsys.readouterr().out


def test_a_row_over_its_limit_fails_the_run(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, WELL, OVER)

    assert run.main([]) == 1
    assert len(json.loads(results.read_text())["rows"]) == 2
    assert "over its limit: slow" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["decoding"]) == 2
    assert "unknown benchmark decoding; name any of " in capsys.readouterr().err
    assert "service" in run.names()


def test_a_benchmark_that_fails_takes_no_other_with_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "measured", lambda chosen, console: ([WELL], ["peers"]))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    assert run.main([]) == 1
    assert len(json.loads(results.read_text())["rows"]) == 1
    assert "failed: peers: its rows are missing" in " ".join(capsys.readouterr().out.split())
