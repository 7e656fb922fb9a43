"""The flow of paths: which step follows which, in what shares, and where runs leave the common path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.report.text import clean, percent

MAX_COLUMNS: Final = 8
"""Steps that the graph shows; later ones are counted at its end."""
MAX_ROWS: Final = 5
"""Different steps in one column; the rarest share a box."""
MAX_NAME: Final = 16
"""Characters of a name that fit into its box."""

BOX_WIDTH: Final = 140
BOX_HEIGHT: Final = 40
COLUMN: Final = 182
ROW: Final = 62
COMMON: Final = 1 / 3
"""Share of the runs from which their most frequent path is a common one; below, none is."""
EDGE: Final = 2
"""Margin around the graph."""

Steps: TypeAlias = tuple[str, ...]
Cell: TypeAlias = tuple[int, str]
"""A column, and the step there."""

START: Final = "start"
END: Final = "end"
OTHERS: Final = "others"


class Box(NamedTuple):
    """A step in its cell. `kind`: common, off (the common path leads elsewhere), start, end or others."""

    x: int
    y: int
    label: str
    title: str
    share: str
    kind: str


class Edge(NamedTuple):
    """A transition from one box to the next: an SVG path, as wide as its share of all runs."""

    path: str
    width: float
    common: bool
    title: str


class Flow(NamedTuple):
    """The graph, and the same in words: the common path, its share, how many paths and runs there are."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    common: Steps
    common_share: float
    paths: int
    runs: int
    task: str | None = None


def flow_of(taken: Mapping[Steps, int], task: str | None = None) -> Flow | None:
    """Return the flow of these paths, each with its runs; None without any.

    >>> flow = flow_of({("search", "book"): 3, ("search", "pay"): 1})
    >>> flow.common, flow.common_share, [(box.label, box.share, box.kind) for box in flow.boxes if box.kind == "off"]
    (('search', 'book'), 0.75, [('pay', '25 %', 'off')])
    """
    if not taken:
        return None
    common = common_path(taken)
    hidden = _alike_at_first(taken)
    routes = {_shown(path, hidden): 0 for path in taken}
    for path, runs in taken.items():
        routes[_shown(path, hidden)] += runs
    return _drawn(routes, _shown(common, hidden), _Whole(common, taken, task))


class _Whole(NamedTuple):
    """The numbers of a flow."""

    common: Steps
    taken: Mapping[Steps, int]
    task: str | None


def common_path(taken: Mapping[Steps, int]) -> Steps:
    """Return the path that most runs took; of equals, the first by name.

    >>> common_path({("b",): 2, ("a",): 2, ("c",): 1})
    ('a',)
    """
    return min(taken, key=lambda path: (-taken[path], path))


def _alike_at_first(taken: Mapping[Steps, int]) -> int:
    """Return how many steps at the start share one box, because all runs have them: all but the last of them."""
    shared = _common(min(taken), max(taken))
    longest = max(map(len, taken))
    return max(0, shared - 1) if longest + 2 > MAX_COLUMNS and shared > 2 else 0


def _common(left: Steps, right: Steps) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _shown(path: Steps, hidden: int) -> tuple[Cell, ...]:
    """Return the boxes that a path passes: its start, its steps, and its end or the end of the graph."""
    first = START if not hidden else f"{START} · {hidden} steps alike"
    steps = path[hidden:]
    kept = [first, *(f"={step}" for step in steps[: MAX_COLUMNS - 2])]
    kept.append(END if len(steps) <= MAX_COLUMNS - 2 else "…")
    return tuple(enumerate(kept))


def _drawn(routes: Mapping[tuple[Cell, ...], int], common: tuple[Cell, ...], whole: _Whole) -> Flow:
    runs = sum(routes.values())
    passing: Counter[Cell] = Counter()
    for route, number in routes.items():
        passing.update(dict.fromkeys(route, number))
    cells = _rows_by_cell(passing, frozenset(common))
    steps: Counter[tuple[Cell, Cell]] = Counter()
    joined: Counter[Cell] = Counter()
    for route, number in routes.items():
        shown = [_merged(cell, cells) for cell in route]
        joined.update(dict.fromkeys(shown, number))
        steps.update(dict.fromkeys(pairwise(shown), number))
    rows = max(cells.values(), default=0) + 1
    columns = max(column for column, _ in cells) + 1
    return Flow(
        width=(columns - 1) * COLUMN + BOX_WIDTH + 2 * EDGE,
        height=(rows - 1) * ROW + BOX_HEIGHT + 2 * EDGE,
        boxes=tuple(_box(cell, cells[cell], joined[cell], runs, cell in common) for cell in sorted(joined)),
        edges=tuple(_edges(steps, cells, frozenset(common), runs)),
        common=whole.common,
        common_share=whole.taken[whole.common] / runs,
        paths=len(whole.taken),
        runs=runs,
        task=whole.task,
    )


def _rows_by_cell(passing: Mapping[Cell, int], common: frozenset[Cell]) -> dict[Cell, int]:
    """Return the row of every box: the common path is a straight line on top, below it the others, the most frequent first."""
    rows: dict[Cell, int] = {}
    for column in {column for column, _ in passing}:
        here = sorted(
            (cell for cell in passing if cell[0] == column),
            key=lambda cell: (cell not in common, -passing[cell], cell),
        )
        free = 0 if here[0] in common else 1
        for at, cell in enumerate(here[:MAX_ROWS] if len(here) <= MAX_ROWS else here[: MAX_ROWS - 1]):
            rows[cell] = at + free
        if len(here) > MAX_ROWS:
            rows[column, OTHERS] = MAX_ROWS - 1 + free
    return rows


def _merged(cell: Cell, cells: Mapping[Cell, int]) -> Cell:
    return cell if cell in cells else (cell[0], OTHERS)


def _box(cell: Cell, row: int, runs: int, of: int, common: bool) -> Box:
    column, name = cell
    step = name.removeprefix("=") if name.startswith("=") else None
    kind = (
        "others"
        if name == OTHERS
        else "common"
        if common and step is not None
        else "off"
        if step is not None
        else "end"
    )
    share = percent(runs / of)
    label = clean(step, MAX_NAME) if step is not None else {END: "end", OTHERS: "other steps"}.get(name, name)
    full = clean(step, 200) if step is not None else label
    return Box(
        x=EDGE + column * COLUMN,
        y=EDGE + row * ROW,
        label=label,
        title=f"{full}: {runs:,} of {of:,} runs, {share}",
        share=share,
        kind=kind,
    )


def _edges(
    steps: Mapping[tuple[Cell, Cell], int], cells: Mapping[Cell, int], common: frozenset[Cell], runs: int
) -> Sequence[Edge]:
    """Return the rare ones first, so that the common path is drawn over them."""
    ordered = sorted(steps, key=lambda step: (_is_common(step, common), steps[step], step))
    return [_edge(step, cells, _is_common(step, common), steps[step], runs) for step in ordered]


def _is_common(step: tuple[Cell, Cell], common: frozenset[Cell]) -> bool:
    return step[0] in common and step[1] in common


def _edge(step: tuple[Cell, Cell], cells: Mapping[Cell, int], common: bool, runs: int, of: int) -> Edge:
    (column, _), _ = step
    x1, x2 = EDGE + column * COLUMN + BOX_WIDTH, EDGE + (column + 1) * COLUMN
    y1, y2 = (EDGE + cells[cell] * ROW + BOX_HEIGHT // 2 for cell in step)
    middle = (x1 + x2) // 2
    names = [_name(cell) for cell in step]
    return Edge(
        path=f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}",
        width=round(1.5 + 10 * runs / of, 1),
        common=common,
        title=f"{names[0]} → {names[1]}: {runs:,} of {of:,} runs, {percent(runs / of)}",
    )


def _name(cell: Cell) -> str:
    return clean(cell[1].removeprefix("="), MAX_NAME)
