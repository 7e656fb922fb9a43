from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.contrast.parting import Ends
from otel_reliability.ui.flow import (
    BOX_HEIGHT,
    BOX_WIDTH,
    EDGE,
    MAX_COLUMNS,
    MAX_ROWS,
    Flow,
    flow_of,
)

PATHS = st.lists(
    st.lists(st.sampled_from("abcdefgh"), max_size=12).map(tuple), min_size=1, max_size=30
)


def drawn(*paths: str) -> Flow:
    flow = flow_of(Counter(tuple(path.split()) for path in paths))
    assert flow is not None
    return flow


def names(flow: Flow, kind: str) -> list[tuple[str, str]]:
    return [(box.label, box.share) for box in flow.boxes if box.kind == kind]


@given(PATHS)
def test_every_picture_is_small_and_complete(paths: list[tuple[str, ...]]) -> None:
    flow = flow_of(Counter(paths))

    assert flow is not None
    places = [(box.x, box.y) for box in flow.boxes]
    assert len(set(places)) == len(places)
    assert all(
        x + BOX_WIDTH + EDGE <= flow.width and y + BOX_HEIGHT + EDGE <= flow.height
        for x, y in places
    )
    columns = Counter(x for x, _ in places)
    assert len(columns) <= MAX_COLUMNS
    assert max(columns.values()) <= MAX_ROWS + 1
    assert flow.runs == len(paths)
    assert flow.common in paths


@given(PATHS)
def test_the_common_path_is_a_straight_line_on_top(paths: list[tuple[str, ...]]) -> None:
    flow = flow_of(Counter(paths))

    assert flow is not None
    common = [box for box in flow.boxes if box.kind == "common"]
    assert all(box.y == EDGE for box in common)
    assert len([edge for edge in flow.edges if edge.common]) >= len(common)


def test_where_runs_leave_the_common_path() -> None:
    flow = drawn("search book", "search book", "search book", "search pay", "look")

    assert names(flow, "common") == [("search", "80 %"), ("book", "60 %")]
    assert sorted(names(flow, "off")) == [("look", "20 %"), ("pay", "20 %")]
    assert flow.common_share == 0.6
    assert "search → pay: 1 of 5 runs, 20 %" in [edge.title for edge in flow.edges]


def test_long_beginnings_that_all_share_stand_in_one_box() -> None:
    alike = "a b c d e f g h"
    flow = drawn(f"{alike} x", f"{alike} x", f"{alike} y")

    assert names(flow, "end")[0] == ("start · 7 steps alike", "100 %")
    assert ("y", "33 %") in names(flow, "off")


def test_rare_steps_stand_together() -> None:
    flow = drawn(*["a"] * 9, *"bbbbccdefgh")

    assert names(flow, "others") == [("other steps", "20 %")]
    assert [label for label, _ in names(flow, "off")] == ["b", "c", "d"]


def test_a_step_may_have_the_name_of_a_place() -> None:
    flow = drawn("start others end", "start others end")

    assert [label for label, _ in names(flow, "common")] == ["start", "others", "end"]


def test_without_a_path_there_is_no_flow() -> None:
    assert flow_of({}) is None


def test_runs_that_call_nothing_have_a_flow() -> None:
    flow = drawn("", "", "a")

    assert flow.common == ()
    assert names(flow, "off") == [("a", "33 %")]


def test_steps_of_failing_runs_are_coloured_and_named() -> None:
    taken = {("look", "pay"): 10, ("look", "ask"): 10}
    ends = {("look", "pay"): Ends(9, 10), ("look", "ask"): Ends(1, 8)}

    flow = flow_of(taken, ends=ends)

    assert flow is not None
    found = {box.label: (box.fails, box.share) for box in flow.boxes}
    assert found["pay"] == (4, "50 % · 90 % fail")
    assert found["ask"] == (0, "50 % · 12 % fail")
    assert found["start"] == (2, "100 %")
    assert [box.title for box in flow.boxes if box.label == "ask"] == [
        "ask: 10 of 20 runs, 50 %; 1 of 8 fail"
    ]
    assert flow.parting is not None
    assert flow.parting.step in {"pay", "ask"}


def test_where_no_end_is_known_nothing_is_coloured() -> None:
    flow = flow_of({("look",): 3})

    assert flow is not None
    assert {box.fails for box in flow.boxes} == {None}
    assert flow.parting is None
