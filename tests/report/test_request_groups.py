"""The kinds of work of an agent, listed by what goes wrong; groups with alike requests keep their
letters.
"""

from __future__ import annotations

import gzip
import json
import random
from itertools import permutations
from typing import Any

from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.conventions.sketch import sketch_of
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome, Run
from otel_reliability.report.build import AgentSource, agent_view
from otel_reliability.report.groups import letter
from otel_reliability.report.request_groups import Known, learned, members_of, names_of, renamed
from otel_reliability.report.sections import request_groups
from otel_reliability.report.view import AgentView
from otel_reliability.testing import run
from otel_reliability.windows.window import measure
from tests.shared import shared

TEXTS = {
    "cancel": ("cancel my order please", ["find", "cancel"]),
    "weather": ("what is the weather tomorrow", ["forecast"]),
    "reset": ("reset the password of my account", ["verify", "reset", "mail"]),
}


def asked(kind: str, number: int, *, failed: bool = False, **facts: Any) -> Run:
    text, path = TEXTS[kind]
    outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
    return replace(run(path, number, outcome=outcome, **facts), request=sketch_of(text))


def view_of(runs: list[Run]) -> AgentView:
    window = measure(runs)
    source = AgentSource(runs[0].key, window, window.rows(), window.readings(), 0, ())
    return agent_view(source, Settings(), 100)


def test_kinds_of_request_are_listed_with_the_one_that_fails_most_first() -> None:
    runs = [asked("cancel", number) for number in range(6)]
    runs += [asked("reset", 10 + number, failed=number > 2) for number in range(6)]
    runs += [asked("weather", 20)]
    runs += [asked("weather", 30 + number, task_id="a task", cost=0.5) for number in range(2)]

    view = view_of(runs)

    worst, *others = view.request_groups
    assert (worst.kind, worst.runs, worst.success_rate) == ("requests", 6, 0.5)
    assert worst.usual_path == ("verify", "reset", "mail")
    assert worst.trend == -1.0
    assert worst.trace_ids[0] == runs[11].run_id.partition("-")[0]
    assert {(one.kind, one.name, one.runs) for one in others} == {
        ("requests", None, 6),
        ("task", "a task", 2),
    }
    assert next(one.cost for one in others if one.kind == "task") == 0.5
    section = next(request_groups(view, brief=True))
    assert "verify → reset → mail" in str(section.rows[0][0])
    assert "1 run in no group" in " ".join(map(str, section.notes))


def test_agent_of_which_nothing_is_known_has_no_kinds_of_request() -> None:
    assert not view_of([run(["search"], number) for number in range(4)]).request_groups


def test_group_keeps_its_letter_while_runs_come_and_go_and_its_name() -> None:
    rows = measure([asked("cancel", n) for n in range(3)]).rows()
    known = learned((), rows)
    named = renamed(known, "A", "  Cancel\n an order ")
    assert named is not None
    assert renamed(known, "B", "none") is None

    later = [asked("weather", 10 + n) for n in range(3)] + [
        asked("cancel", 20 + n) for n in range(3)
    ]
    rows = measure(later).rows()
    known = learned(named, rows)

    names = {one.name: one.number for one in names_of(rows, known).values()}
    assert names == {"Cancel an order": 0, "": 1}
    assert [row.end_ns for row in members_of(rows, known, "A")] == [row.end_ns for row in rows[3:]]


def test_groups_of_real_requests_are_found_again_in_the_next_window() -> None:
    texts: dict[str, list[str]] = json.loads(
        gzip.decompress(shared("corpora/inputs/clinc_half.json.gz").read_bytes())
    )
    right = wrong = 0
    for seed in range(3):
        drawn = random.Random(seed)
        intents = drawn.sample(sorted(texts), 10)
        stream: list[tuple[str, Run]] = []
        for number in range(200):
            intent = drawn.choice(intents)
            request = sketch_of(drawn.choice(texts[intent]))
            stream.append((intent, replace(run([intent], number), request=request)))
        before = measure(one for _, one in stream[:100]).rows()
        known = learned((), before)
        after = measure(one for _, one in stream[100:]).rows()
        meant = {one.number: _usual(before, known, letter(one.number)) for one in known}
        for number, group in names_of(after, known).items():
            paths = [row.path.names for row in after if row.group == number and row.path]
            same = max(paths, key=paths.count) == meant[group.number]
            right += same
            wrong += not same

    assert right >= 20
    assert wrong <= 0.1 * right


def _usual(rows: list[Row], known: Known, identity: str) -> tuple[str, ...]:
    paths = [row.path.names for row in members_of(rows, known, identity) if row.path]
    return max(paths, key=paths.count)


def test_the_usual_path_of_equals_is_the_same_in_whatever_order_runs_arrive() -> None:
    paths = (["find", "cancel"], ["cancel"], ["mail", "find"])
    runs = [
        replace(run(path, number), request=sketch_of("cancel my order please"))
        for number, path in enumerate(paths, 1)
    ]
    found = {view_of([*order]).request_groups[0].usual_path for order in permutations(runs)}

    assert found == {("mail", "find")}
