"""Files that are looked through beforehand, so that runs close where nothing more of them can come,
against the same read to their end with every run open.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.model.run import Run, RunChange, RunEvent
from otel_reliability.model.span import KIND_CONSUMER, Evaluation, RawSpan
from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.report import json as report_json
from otel_reliability.report.build import report_of
from otel_reliability.report.inspection import Inspection
from otel_reliability.report.json import line
from otel_reliability.testing import at, span, write_otlp
from tests.laws.telemetry import cases
from tests.report.build import chat, runs
from tests.shared import each_file

SETTINGS = replace(REPORT_SETTINGS, hash_key="00" * 16)
KEYED = replace(SETTINGS, assembly=replace(SETTINGS.assembly, run_key="job"))


def _told(
    read: Callable[[Recording], object], settings: Settings = SETTINGS
) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """All that commands tell of a recording; and how many runs were told of at which telling."""
    inspection = Inspection(settings)
    final = list[Run]()
    tellings = list[tuple[str, int]]()

    def take(runs: list[Run]) -> None:
        inspection.take(runs)
        final.extend(runs)
        tellings.append(("runs", len(runs)))

    recording = Recording(settings, final=take, batches=inspection.see)
    withdrawn = Counter[str]()

    def observe(event: RunEvent, now: float) -> None:
        if event.change is RunChange.WITHDRAWN:
            withdrawn[event.run.closed_by.value] += 1

    recording.engine.observers.append(observe)
    read(recording)
    tellings.append(("end", 0))
    recording.close()
    return {
        "runs": [line(run) for run in sorted(final, key=lambda run: (run.start_ns, run.run_id))],
        "report": report_json.render(report_of(recording, max_runs_for_intervals=0)),
        "inspection": report_json.plain(inspection.found()),
        "accounts": +recording.engine.accounts,
        "closed": recording.engine.closed - withdrawn,
        "incomplete": recording.engine.incomplete,
        "judgements": +recording.engine.refused_evaluations,
        "problems": recording.problems,
        "sessions": {key: list(recording.sessions(key)) for key in recording.agents()},
        "limits": [(limit.name, limit.hits) for limit in recording.engine.limits()],
    }, tellings


def _held(paths: Sequence[Path], settings: Settings = SETTINGS) -> dict[str, Any]:
    """With every run open to the end."""

    def read(recording: Recording) -> None:
        for path in paths:
            recording.read(path)

    return _told(read, settings)[0]


def _early(paths: Sequence[Path], settings: Settings = SETTINGS) -> dict[str, Any]:
    return _told(lambda recording: recording.read_all(paths), settings)[0]


def _told_before_the_end(paths: Sequence[Path], settings: Settings = SETTINGS) -> int:
    tellings = _told(lambda recording: recording.read_all(paths), settings)[1]
    return sum(number for what, number in tellings[: tellings.index(("end", 0))] if what == "runs")


def _apart(path: Path) -> Iterator[bytes]:
    """The spans and log records of a file, each on a line of its own."""
    for text in gzip.decompress(path.read_bytes()).splitlines():
        request = json.loads(text)
        for signal, scopes, records in (
            ("resourceSpans", "scopeSpans", "spans"),
            ("resourceLogs", "scopeLogs", "logRecords"),
        ):
            for group in request.get(signal) or ():
                for scope in group[scopes]:
                    for record in scope[records]:
                        one = {**group, scopes: [{**scope, records: [record]}]}
                        yield json.dumps({signal: [one]}).encode() + b"\n"


@pytest.mark.parametrize(
    "capture", each_file("corpora/captured/*.jsonl.gz", "corpora/otel_real/*.jsonl.gz")
)
def test_captures_tell_the_same(tmp_path: Path, capture: Path) -> None:
    """In their order; and a third of the captures, drawn by name, apart: shuffled into two files, a
    fifth of it twice. Half of these are read with the second file first, and one of them again.
    """
    logs = capture.with_name(capture.name.replace(".jsonl", ".logs.jsonl"))
    files = [capture, logs] if logs.exists() else [capture]
    expected = _held(files)

    assert _early(files) == expected

    dice = random.Random(capture.name)
    if dice.random() < 2 / 3:
        return
    lines = [each for file in files for each in _apart(file)]
    dice.shuffle(lines)
    again = dice.sample(lines, len(lines) // 5)
    one = tmp_path / "one.jsonl"
    two = tmp_path / "two.jsonl.gz"
    one.write_bytes(b"".join(lines[::2]))
    two.write_bytes(gzip.compress(b"".join([*lines[1::2], *again])))

    files = dice.choice([[one, two], [two, one, one]])
    early = _early(files)
    assert early["runs"] == expected["runs"]
    assert early == _held(files)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_no_telemetry_tells_anything_else(tmp_path: Path, data: st.DataObject) -> None:
    case = data.draw(cases(hostile=data.draw(st.booleans())))
    spans: list[RawSpan] = data.draw(st.permutations(case.everything)) if case.everything else []
    cut = data.draw(st.integers(0, len(spans)))
    batch = data.draw(st.sampled_from((1, 1, 3)))
    first = write_otlp(tmp_path / "first.jsonl", spans[:cut], case.evaluations, batch=batch)
    second = write_otlp(tmp_path / "second.jsonl", spans[cut:], batch=batch)

    assert _early([first, second]) == _held([first, second])


def test_runs_are_told_of_when_nothing_more_of_them_can_come(tmp_path: Path) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", runs(*["search reply"] * 9), batch=1)

    assert _told_before_the_end([path]) == 8
    assert _told_before_the_end([path, path]) == 8, (
        "each is whole only when the second file has told it again"
    )


def test_a_pipe_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", runs(*["search reply"] * 9), batch=1)
    other = write_otlp(tmp_path / "others.jsonl", runs(*["search"] * 3, first=20), batch=1)
    expected = _held([path, other])
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": file}))

        assert _early([Path("-"), other]) == expected


def test_work_of_one_key_in_several_traces_is_one_run(tmp_path: Path) -> None:
    loose = [
        span(
            n, trace=n, start=n, attributes={"gen_ai.operation.name": "chat", "job": f"job {n % 3}"}
        )
        for n in range(1, 10)
    ]
    path = write_otlp(
        tmp_path / "spans.jsonl", [*loose, *runs("search", "reply", first=20)], batch=1
    )

    assert _early([path], KEYED) == _held([path], KEYED)
    assert len(_early([path], KEYED)["runs"]) == 5


def test_a_link_to_a_trace_that_was_whole_finds_it(tmp_path: Path) -> None:
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}
    root = span(1, trace=1, end=9, attributes=said)
    sent = span(2, 1, trace=1, name="send")
    received = span(3, trace=2, kind=KIND_CONSUMER, links=[(1, 2)])
    tool = span(4, 3, trace=2, attributes=called)
    between = runs(*["search"] * 4, first=30)
    for order in (
        [root, sent, received, tool],
        [tool, received, root, sent],
        [received, tool, sent, root],
    ):
        lines = [each for pair in zip(order, between[::2], strict=True) for each in pair]
        path = write_otlp(tmp_path / "spans.jsonl", lines, batch=1)

        assert _early([path]) == _held([path])
        assert any('"path": ["t"]' in run for run in _early([path])["runs"])


def test_a_judgement_of_a_response_finds_its_run(tmp_path: Path) -> None:
    """One that names no trace may belong to any: then no run is closed before the end."""
    spans = [*runs("search", "reply"), chat(1, gen_ai__response__id="resp-1")]
    for judged in (
        Evaluation("success", 0.0, None, at(0), None, None, "resp-1"),
        Evaluation("ok", 1.0, None, 1),
    ):
        path = write_otlp(tmp_path / "spans.jsonl", spans, [judged], batch=1)

        assert _early([path]) == _held([path])


def test_a_file_that_grows_is_read_as_it_was_found(tmp_path: Path) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", runs(*["search reply"] * 3), batch=1)
    expected = _held([path])

    def grow(_: int, __: int | None) -> None:
        with path.open("ab") as file:
            file.write(path.read_bytes().splitlines(keepends=True)[0])

    found, _ = _told(
        lambda recording: recording.read_all([path], lambda file: None if file is None else grow)
    )

    assert found == expected
