from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from otel_reliability.change.points import MAX_POINTS, MAX_VALUES, ChangePoints
from otel_reliability.change.recording import Observations, evaluate
from otel_reliability.change.result import Result
from otel_reliability.change.sentences import of_recording
from otel_reliability.config import ChangeSettings, LimitSettings, Settings
from otel_reliability.model.observation import Observation, joined, observation_of
from otel_reliability.model.record import pack, unpack
from otel_reliability.model.run import AgentKey, CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import RawSpan
from otel_reliability.telemetry.ledger import BUDGET
from otel_reliability.telemetry.live import live_of
from otel_reliability.telemetry.log_events import emit
from otel_reliability.testing import run, write_otlp
from tests.cli.command_line import call
from tests.corpora.recordings import rebuilt
from tests.report.build import chat, run_spans
from tests.telemetry.loggers import Kept, loggers
from tests.telemetry.meters import Meters

SETTINGS = ChangeSettings(runs_per_false_alarm=200)
SECOND = 1_000_000_000


def seen(n: int, *values: str, kind: str = "model") -> Observation:
    return observation_of(run((), n, fingerprints=tuple((kind, value) for value in values)))


def points_of(
    observations: Iterable[Observation],
) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """The change points of an agent: observation, values before, values after."""
    points = ChangePoints()
    for ordinal, observation in enumerate(observations, 1):
        points.add(observation, ordinal)
    return [(point.observation, point.before, point.after) for point in points.latest]


def test_first_appearance_is_a_change_point_and_returning_is_none() -> None:
    models = ["a"] * 20 + ["b"] * 5 + ["a"] * 5 + ["b"] * 5
    assert points_of(seen(n, model) for n, model in enumerate(models)) == [(21, ("a",), ("b",))]


def test_values_used_side_by_side_are_the_baseline() -> None:
    assert points_of(seen(n, "ab"[n % 2]) for n in range(100)) == []


def test_value_that_is_new_with_every_run_is_no_change_point() -> None:
    """A prompt that holds the time has a hash of its own in every run."""
    assert points_of(seen(n, f"{n}", kind="prompt") for n in range(300)) == []


def test_kind_that_appears_late_has_a_baseline_of_its_own() -> None:
    """A newer instrumentation may report what the one before did not."""
    without = [seen(n, "a") for n in range(20)]
    with_prompt = [seen(n, "p", kind="prompt") for n in range(20)]
    assert points_of([*without, *with_prompt]) == []
    changed = [seen(n, "q", kind="prompt") for n in range(3)]
    assert points_of([*without, *with_prompt, *changed]) == [(41, ("p",), ("q",))]


def test_memory_is_bounded() -> None:
    points = ChangePoints()
    for n in range(20_000):
        points.add(seen(n, f"{n // 10}"), n)
    kinds, latest = points.to_data()
    assert len(latest) == MAX_POINTS
    assert len(kinds["model"][2]) == MAX_VALUES


def test_state_continues_after_a_restart() -> None:
    points = ChangePoints()
    whole = ChangePoints()
    for n in range(60):
        one = seen(n, "a" if n < 25 else "b" if n < 40 else "c")
        points.add(one, n)
        whole.add(one, n)
        points = ChangePoints.from_data(unpack(pack(points.to_data())))
    assert points.to_data() == whole.to_data()
    assert [point.observation for point in points.latest] == [25, 40]
    assert points.current() == {"model": ("c",)}


def test_session_has_the_fingerprints_of_all_its_runs() -> None:
    session = joined("s", [seen(1, "a"), seen(2, "b"), seen(3, "a")])
    assert session.fingerprints == (("model", "a"), ("model", "b"))
    assert convert(unpack(pack(session)), Observation) == session


def spans_of(n: int, model: str, calls: int) -> list[RawSpan]:
    asked: dict[str, Any] = {
        "gen_ai__response__model": model,
        "gen_ai__usage__output_tokens": 10,
        "gen_ai__system_instructions": "Be helpful.",
        "gen_ai__tool__definitions": '[{"name": "search"}]',
    }
    return [*run_spans(n + 1, "search " * calls, agent="desk"), chat(n + 1, **asked)]


@pytest.fixture(scope="module")
def swapped() -> Sequence[Run]:
    """A recorded agent whose model changes at its 121st run, and which makes more calls from its
    131st on.
    """
    calls = [3 + n % 2 if n < 130 else 7 + n % 3 for n in range(240)]
    return rebuilt(
        one
        for n in range(240)
        for one in spans_of(n, "gpt-4.1" if n < 120 else "gpt-5-mini", calls[n])
    ).runs


def test_alarm_names_the_model_that_changed(swapped: Sequence[Run]) -> None:
    (observations,) = Observations(swapped).values()
    found = evaluate(observations, SETTINGS)
    assert found.result is Result.CHANGED
    assert [(one.kind, one.before, one.after, one.observation) for one in found.points] == [
        ("model", ("gpt-4.1",), ("gpt-5-mini",), 121)
    ]
    assert found.alarms[0].points == found.points
    assert "what else changed: model gpt-4.1 → gpt-5-mini at observation 121" in of_recording(found)


def test_fingerprints_are_hashes_and_versions_never_content(swapped: Sequence[Run]) -> None:
    shown = dict(swapped[0].fingerprints)
    assert (shown["model"], shown["framework"]) == ("gpt-4.1", "test 1")
    assert len(shown["prompt"]) == len(shown["tools"]) == 16
    assert "helpful" not in repr(swapped[0])
    assert len({run.fingerprints for run in swapped}) == 2


def test_log_event_and_info_series_follow_the_change_point() -> None:
    kept = Kept()
    meters = Meters()
    live = live_of(meters.provider, Settings())
    shown: list[str] = []
    for first, model in ((0, "gpt-4.1"), (40, "gpt-5-mini"), (80, "gpt-4.1")):
        for n in range(first, first + 40):
            live.engine.receive(spans_of(n, model, 2))
        live.engine.flush(CloseReason.FLUSH)
        emit(live.engine.take_changes(), loggers(kept))
        shown += [str(one.attributes["model"]) for one in meters.look().points("info")]

    assert shown == ["gpt-4.1", "gpt-5-mini", "gpt-5-mini"]
    (record,) = (one.log_record for one in kept.emitted)
    assert (record.event_name, record.severity_text) == ("agent_reliability.change_point", "INFO")
    assert record.attributes["agent.reliability.change.kind"] == "model"
    assert record.body["message"] == "model gpt-4.1 → gpt-5-mini at observation 41"


def test_info_of_many_agents_stays_within_the_limit_of_the_sdk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where each change point of a fleet adds an attribute set, those beyond the budget are not
    emitted.
    """
    assert BUDGET < 2_000, "else the SDK folds what is beyond its limit into one"
    monkeypatch.setattr("otel_reliability.telemetry.live.BUDGET", 95)
    meters = Meters()
    sets = set[tuple[tuple[str, object], ...]]()
    live = live_of(meters.provider, Settings(limits=LimitSettings(agents=10)))
    for n in range(55):
        made = (("model", f"m{n // 5}"),)
        keys = [AgentKey("", "shop", "", f"{agent}") for agent in range(11)]
        runs = [run((), n, key=key, fingerprints=made, run_id=f"{key.agent}-{n}") for key in keys]
        live.engine.receive_events([RunEvent(RunChange.CLOSED, one) for one in runs])
        if n % 5 == 4:
            sets.update(
                tuple(sorted(one.attributes.items())) for one in meters.look().points("info")
            )
    assert len(sets) == 95


def test_report_by_model_compares_the_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [
        one
        for n in range(40)
        for one in spans_of(n, "gpt-4.1" if n < 20 else "gpt-5-mini", 1 + n % (2 + n // 20))
    ]
    path = write_otlp(tmp_path / "spans.jsonl", spans)
    document = json.loads(call(capsys, "report", path, "--by", "model", "--format", "json").out)

    assert [(one["agent"], one["runs"]) for one in document["agents"]] == [
        ("desk", 20),
        ("desk", 20),
    ]
    (compared,) = document["baseline"]["agents"]
    one = compared["metrics"]["path_entropy"]
    assert one["before"]["runs"] == one["after"]["runs"] == 20
    assert all(one[side]["low"] <= one[side]["high"] for side in ("before", "after")), one
    printed = call(capsys, "report", path, "--by", "model").out
    assert "gpt-4.1" in printed
    assert "gpt-5-mini" in printed
    assert call(capsys, "report", path, "--by", "version").code == 0
