"""The flow of paths: which step follows which, in what shares, and where runs leave the usual path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.row import Row
from otel_reliability.report.text import clean, percent

MOST_COLUMNS: Final = 8
"""Steps that a picture shows; what comes later is counted at its end."""
MOST_ROWS: Final = 5
"""Different steps at one place; the rarest stand together."""
LONGEST: Final = 16
"""Characters of a name that fit into its box."""

BOX_WIDTH: Final = 140
BOX_HEIGHT: Final = 40
COLUMN: Final = 182
ROW: Final = 62
USUAL: Final = 1 / 3
"""Share of the runs from which their most frequent path is a usual one; below, none is."""
EDGE: Final = 2
"""Room around the picture."""

Steps: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[int, str]
"""A column, and the step there."""

START: Final = "start"
END: Final = "end"
OTHERS: Final = "others"


class Box(NamedTuple):
    """A step at its place. `kind`: usual, off (the usual path leads elsewhere), start, end or others."""

    x: int
    y: int
    label: str
    title: str
    share: str
    kind: str


class Edge(NamedTuple):
    """What leads from one box to the next: an SVG path, as wide as its share of all runs."""

    path: str
    width: float
    usual: bool
    title: str


class Flow(NamedTuple):
    """The picture, and the same in words: the usual path, its share, how many paths and runs there are."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    usual: Steps
    usual_share: float
    paths: int
    runs: int
    task: str | None = None


def flow_of(rows: Iterable[Row], task: str | None = None) -> Flow | None:
    """The flow of the undisturbed runs whose path is known; None without any.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> flow = flow_of(rows_of(*["search book"] * 3, "search pay"))
    >>> flow.usual, flow.usual_share, [(box.label, box.share, box.kind) for box in flow.boxes if box.kind == "off"]
    (('search', 'book'), 0.75, [('pay', '25 %', 'off')])
    """
    taken = Counter(row.path.names for row in rows if row.path is not None and row.baseline)
    if not taken:
        return None
    usual = usual_of(taken)
    hidden = _alike_at_first(taken)
    routes = {_shown(path, hidden): 0 for path in taken}
    for path, runs in taken.items():
        routes[_shown(path, hidden)] += runs
    return _drawn(routes, _shown(usual, hidden), _Whole(usual, taken, task))


class _Whole(NamedTuple):
    """What a flow tells beside its picture."""

    usual: Steps
    taken: Counter[Steps]
    task: str | None


def usual_of(taken: Mapping[Steps, int]) -> Steps:
    """The path that most runs took; of equals, the first by name.

    >>> usual_of({("b",): 2, ("a",): 2, ("c",): 1})
    ('a',)
    """
    return min(taken, key=lambda path: (-taken[path], path))


def _alike_at_first(taken: Mapping[Steps, int]) -> int:
    """How many steps at the start can be told in one box, as all runs share them: all but the last of them."""
    shared = _common(min(taken), max(taken))
    longest = max(map(len, taken))
    return max(0, shared - 1) if longest + 2 > MOST_COLUMNS and shared > 2 else 0


def _common(left: Steps, right: Steps) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _shown(path: Steps, hidden: int) -> tuple[Place, ...]:
    """The boxes that a path passes: its start, its steps, its end, or how far it went beyond the picture."""
    first = START if not hidden else f"{START} · {hidden} steps alike"
    steps = path[hidden:]
    kept = [first, *(f"={step}" for step in steps[: MOST_COLUMNS - 2])]
    kept.append(END if len(steps) <= MOST_COLUMNS - 2 else "…")
    return tuple(enumerate(kept))


def _drawn(routes: Mapping[tuple[Place, ...], int], usual: tuple[Place, ...], whole: _Whole) -> Flow:
    runs = sum(routes.values())
    passing: Counter[Place] = Counter()
    for route, number in routes.items():
        passing.update(dict.fromkeys(route, number))
    places = _placed(passing, frozenset(usual))
    steps: Counter[tuple[Place, Place]] = Counter()
    joined: Counter[Place] = Counter()
    for route, number in routes.items():
        shown = [_merged(place, places) for place in route]
        joined.update(dict.fromkeys(shown, number))
        steps.update(dict.fromkeys(pairwise(shown), number))
    rows = max(places.values(), default=0) + 1
    columns = max(column for column, _ in places) + 1
    return Flow(
        width=(columns - 1) * COLUMN + BOX_WIDTH + 2 * EDGE,
        height=(rows - 1) * ROW + BOX_HEIGHT + 2 * EDGE,
        boxes=tuple(_box(place, places[place], joined[place], runs, place in usual) for place in sorted(joined)),
        edges=tuple(_edges(steps, places, frozenset(usual), runs)),
        usual=whole.usual,
        usual_share=whole.taken[whole.usual] / runs,
        paths=len(whole.taken),
        runs=runs,
        task=whole.task,
    )


def _placed(passing: Mapping[Place, int], usual: frozenset[Place]) -> dict[Place, int]:
    """The row of every box: the usual path is a straight line on top, beneath it the others, the most frequent first."""
    rows: dict[Place, int] = {}
    for column in {column for column, _ in passing}:
        here = sorted(
            (place for place in passing if place[0] == column),
            key=lambda place: (place not in usual, -passing[place], place),
        )
        free = 0 if here[0] in usual else 1
        for at, place in enumerate(here[:MOST_ROWS] if len(here) <= MOST_ROWS else here[: MOST_ROWS - 1]):
            rows[place] = at + free
        if len(here) > MOST_ROWS:
            rows[column, OTHERS] = MOST_ROWS - 1 + free
    return rows


def _merged(place: Place, places: Mapping[Place, int]) -> Place:
    return place if place in places else (place[0], OTHERS)


def _box(place: Place, row: int, runs: int, of: int, usual: bool) -> Box:
    column, name = place
    step = name.removeprefix("=") if name.startswith("=") else None
    kind = (
        "others" if name == OTHERS else "usual" if usual and step is not None else "off" if step is not None else "end"
    )
    share = percent(runs / of)
    label = clean(step, LONGEST) if step is not None else {END: "end", OTHERS: "other steps"}.get(name, name)
    told = clean(step, 200) if step is not None else label
    return Box(
        x=EDGE + column * COLUMN,
        y=EDGE + row * ROW,
        label=label,
        title=f"{told}: {runs:,} of {of:,} runs, {share}",
        share=share,
        kind=kind,
    )


def _edges(
    steps: Mapping[tuple[Place, Place], int], places: Mapping[Place, int], usual: frozenset[Place], runs: int
) -> Sequence[Edge]:
    """The rare ones first, so that the usual path is drawn over them."""
    ordered = sorted(steps, key=lambda step: (_is_usual(step, usual), steps[step], step))
    return [_edge(step, places, _is_usual(step, usual), steps[step], runs) for step in ordered]


def _is_usual(step: tuple[Place, Place], usual: frozenset[Place]) -> bool:
    return step[0] in usual and step[1] in usual


def _edge(step: tuple[Place, Place], places: Mapping[Place, int], usual: bool, runs: int, of: int) -> Edge:
    (column, _), _ = step
    x1, x2 = EDGE + column * COLUMN + BOX_WIDTH, EDGE + (column + 1) * COLUMN
    y1, y2 = (EDGE + places[place] * ROW + BOX_HEIGHT // 2 for place in step)
    middle = (x1 + x2) // 2
    names = [_name(place) for place in step]
    return Edge(
        path=f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}",
        width=round(1.5 + 10 * runs / of, 1),
        usual=usual,
        title=f"{names[0]} → {names[1]}: {runs:,} of {of:,} runs, {percent(runs / of)}",
    )


def _name(place: Place) -> str:
    return clean(place[1].removeprefix("="), LONGEST)
