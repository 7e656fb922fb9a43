"""Runs without a task id are compared with those whose requests are alike."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import pytest
from msgspec.structs import replace

from otel_reliability.config import LimitSettings, Settings, WindowSettings
from otel_reliability.conventions.sketch import sketch_of
from otel_reliability.metrics.base import UNKNOWN_INPUTS
from otel_reliability.metrics.uncertainty import SampleNumbers, intervals
from otel_reliability.model.run import Run
from otel_reliability.statistics.likeness import groups_of
from otel_reliability.testing import run
from otel_reliability.windows.rows import PathTable, row_of
from otel_reliability.windows.window import AgentWindow, measure
from tests.shared import shared

GROUPED: Final = (
    "path_entropy",
    "path_entropy_bits",
    "modal_path_share",
    "tool_variance",
    "tool_call_variation",
    "path_similarity",
    "branch_instability",
    "score",
)
STREAMS: Final = ("steady", "noisy", "random")
KINDS: Final = (
    ("cancel my order please", ["find", "cancel"]),
    ("what is the weather tomorrow", ["forecast"]),
    ("reset the password of my account", ["verify", "reset", "mail"]),
)


def asked(kind: int, number: int, path: list[str] | None = None, **facts: Any) -> Run:
    text, usual = KINDS[kind]
    return replace(run(usual if path is None else path, number, **facts), request=sketch_of(text))


def mixed(seed: int, runs: int = 40) -> list[Run]:
    """Runs of three kinds, some noisy, some with a task, some of unknown input."""
    drawn = random.Random(seed)
    found: list[Run] = []
    for number in range(runs):
        kind = drawn.randrange(len(KINDS))
        path = [*KINDS[kind][1], "retry"] if drawn.random() < 0.3 else None
        one = asked(kind, number, path)
        lot = drawn.random()
        if lot < 0.2:
            one = replace(one, task_id=f"task {kind}")
        elif lot < 0.4:
            one = replace(one, request=None)
        found.append(one)
    return found


def values(window: AgentWindow) -> dict[str, Any]:
    return {name: window.reading(name) for name in GROUPED}


def windowed(runs: Iterable[Run], last: int = 25) -> AgentWindow:
    paths = PathTable()
    window = AgentWindow(WindowSettings("recent", last=last), Settings())
    for one in runs:
        window.insert(row_of(one, paths))
    return window


def test_a_steady_agent_of_many_kinds_of_work_scores_as_with_task_ids() -> None:
    runs = [asked(number % 3, number) for number in range(30)]

    alike = measure(runs)
    labelled = measure([replace(one, task_id=f"task {n % 3}") for n, one in enumerate(runs)])
    unknown = measure([replace(one, request=None) for one in runs])

    assert values(alike) == values(labelled)
    assert alike.reading("score").value == 100.0
    score = unknown.reading("score")
    assert score.value is not None
    assert score.value < 85.0
    assert UNKNOWN_INPUTS in score.note
    assert UNKNOWN_INPUTS in unknown.reading("path_entropy").note
    assert UNKNOWN_INPUTS not in alike.reading("score").note


@pytest.mark.parametrize("seed", range(6))
def test_grouped_readings_do_not_depend_on_order_or_on_reading_in_between(seed: int) -> None:
    runs = mixed(seed)
    shuffled = random.Random(seed).sample(runs, len(runs))
    window = AgentWindow(WindowSettings("recent", last=25), Settings())
    paths = PathTable()
    for one in runs:
        window.insert(row_of(one, paths))
        window.readings()

    assert values(windowed(runs)) == values(windowed(shuffled)) == values(window)
    assert values(windowed(runs)) == values(windowed(runs[-25:]))


def test_a_group_whose_runs_have_left_counts_no_more() -> None:
    paths = [["a"], ["b"], ["a", "c"]]
    runs = [asked(number // 10, number, paths[number % 3]) for number in range(30)]
    table = PathTable()
    window = AgentWindow(WindowSettings("recent", last=10), Settings())
    for one in runs:
        window.insert(row_of(one, table))
        window.readings()

    assert values(window) == values(windowed(runs[-10:]))


@pytest.mark.parametrize("seed", range(4))
def test_a_window_agrees_with_its_labelled_rows(seed: int) -> None:
    window = windowed(mixed(seed))
    rows = window.rows()
    sample = SampleNumbers(Settings())
    sample.add(rows)

    assert {name: sample.reading(name) for name in GROUPED} == values(window)
    found = intervals(rows)
    for name in ("path_entropy", "score"):
        value = window.reading(name).value
        assert value is not None
        assert found[name].low <= value <= found[name].high


def test_path_distance_is_that_to_runs_with_alike_requests() -> None:
    runs = [asked(number % 2, number) for number in range(10)]
    window = measure([*runs, asked(0, 20, ["find", "pay"])])

    rows = window.rows()

    assert window.path_distances([rows[0]])[0].value == pytest.approx(0.1)
    assert window.path_distances([rows[1]])[0].value == 0.0
    assert window.path_distances([rows[-1]])[0].value == 0.5


def test_path_distance_without_groups_is_that_to_all_runs() -> None:
    settings = Settings.load({"metrics": {"group_by": "none"}})
    window = measure([asked(number % 2, number) for number in range(4)], settings)

    found = window.path_distances(window.rows())

    assert [(one.value, one.runs) for one in found] == [(pytest.approx(2 / 3), 3)] * 4


def test_beyond_the_limit_of_paths_the_latest_of_an_input_group_are_compared() -> None:
    settings = Settings(limits=LimitSettings(paths=2))
    paths = [["a"], ["a", "b"], ["c"], ["a"], ["a", "b"]]
    window = measure([asked(0, number, path) for number, path in enumerate(paths)], settings)

    found = window.path_distances(window.rows()[-2:])

    assert window.reading("path_similarity").value == 0.5
    assert [(one.value, one.runs) for one in found] == [(0.5, 1)] * 2


def test_requests_that_are_all_different_are_compared_with_none() -> None:
    window = measure([asked(kind, kind) for kind in range(3)])

    assert window.reading("path_entropy").value is None


def test_groups_of_equal_vectors_are_one() -> None:
    assert groups_of([b"\x0f\x8a"] * 4) == [0] * 4
    assert groups_of([]) == []


def streams(name: str, seed: int) -> dict[str, list[tuple[str, Run]]]:
    """Return the runs of three agents over twenty intents, each with its intent."""
    drawn = random.Random(seed)
    texts = requests(name)
    intents = drawn.sample(sorted(texts), 20)
    tools = [f"tool {number}" for number in range(12)]
    usual = {intent: drawn.choices(tools, k=drawn.randint(3, 5)) for intent in intents}
    found: dict[str, list[tuple[str, Run]]] = {kind: [] for kind in STREAMS}
    for number in range(100):
        intent = drawn.choice(intents)
        request = sketch_of(drawn.choice(texts[intent]))
        path = usual[intent]
        noisy = list(path)
        if drawn.random() < 0.3:
            noisy[drawn.randrange(len(noisy))] = drawn.choice(tools)
        paths = path, noisy, drawn.choices(tools, k=drawn.randint(3, 5))
        for stream, taken in zip(found.values(), paths, strict=True):
            stream.append((intent, replace(run(taken, number), request=request)))
    return found


@cache
def requests(name: str) -> dict[str, list[str]]:
    return json.loads(gzip.decompress(shared(f"corpora/inputs/{name}_half.json.gz").read_bytes()))


@pytest.mark.parametrize("name", ["clinc", "banking"])
def test_agents_of_twenty_intents_score_nearly_as_with_task_ids(name: str) -> None:
    scores: dict[str, list[float]] = {kind: [] for kind in STREAMS}
    for seed in range(10):
        for kind, stream in streams(name, seed).items():
            score = measure(one for _, one in stream).reading("score").value
            assert score is not None
            scores[kind].append(score)
    steady, noisy, chance = (sum(found) / len(found) for found in scores.values())

    assert steady >= 90
    assert 70 <= noisy <= 88
    assert chance <= 66
