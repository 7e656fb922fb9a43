"""The flow of paths: which step follows which, in what shares, where runs leave the common path,
and which steps failing runs take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.contrast.parting import NONE, Ends, PartingStep, parting_step
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
LEVELS: Final = 5
"""Colours for the share of runs that fail: below 20 %, below 40 % and so on."""
COMMON: Final = 1 / 3
"""Share of the runs from which their most frequent path is a common one; below, none is."""
EDGE: Final = 2
"""Margin around the graph."""

Steps: TypeAlias = tuple[str, ...]
Cell: TypeAlias = tuple[int, str]
"""A column, and the step there: behind a `=`, so that a tool may be called start or end."""
Transition: TypeAlias = tuple[Cell, Cell]

START: Final = "start"
END: Final = "end"
OTHERS: Final = "others"


class Box(NamedTuple):
    """A step in its cell. `kind`: common, off (the common path leads elsewhere), start, end or
    others. `fails` is the level of the share of its runs that fail, of `LEVELS`; None: unknown.
    """

    x: int
    y: int
    label: str
    title: str
    share: str
    kind: str
    fails: int | None = None


class Edge(NamedTuple):
    """A transition from one box to the next: an SVG path, as wide as its share of all runs."""

    path: str
    width: float
    common: bool
    title: str


class Flow(NamedTuple):
    """The graph, and the same in words: the common path, its share, how many paths and runs there
    are.
    """

    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    common: Steps
    common_share: float
    paths: int
    runs: int
    task: str | None = None
    parting: PartingStep | None = None


def flow_of(
    taken: Mapping[Steps, int], task: str | None = None, ends: Mapping[Steps, Ends] = {}
) -> Flow | None:
    """Return the flow of these paths, each with its runs and how many of them fail; None without
    any.

    >>> flow = flow_of({("search", "book"): 3, ("search", "pay"): 1})
    >>> (
    ...     flow.common,
    ...     flow.common_share,
    ...     [(box.label, box.share, box.kind) for box in flow.boxes if box.kind == "off"],
    ... )
    (('search', 'book'), 0.75, [('pay', '25 %', 'off')])
    """
    if not taken:
        return None
    runs = sum(taken.values())
    common = common_path(taken)
    hidden = _alike_at_first(taken)
    line = frozenset(_shown(common, hidden))
    passing: Counter[Cell] = Counter()
    for path, number in taken.items():
        passing.update(dict.fromkeys(_shown(path, hidden), number))
    rows = _rows_by_cell(passing, line)
    cells: Counter[Cell] = Counter()
    steps: Counter[Transition] = Counter()
    failing: Counter[Cell] = Counter()
    known: Counter[Cell] = Counter()
    for path, number in taken.items():
        shown = [cell if cell in rows else (cell[0], OTHERS) for cell in _shown(path, hidden)]
        cells.update(dict.fromkeys(shown, number))
        steps.update(dict.fromkeys(pairwise(shown), number))
        of_path = ends.get(path, NONE)
        failing.update(dict.fromkeys(shown, of_path.failing))
        known.update(dict.fromkeys(shown, of_path.known))
    # Rare transitions come first, so that the common path is drawn over them.
    ordered = sorted(steps, key=lambda step: (line.issuperset(step), steps[step], step))
    return Flow(
        width=max(column for column, _ in rows) * COLUMN + BOX_WIDTH + 2 * EDGE,
        height=max(rows.values()) * ROW + BOX_HEIGHT + 2 * EDGE,
        boxes=tuple(
            _box(
                cell,
                rows[cell],
                cells[cell],
                runs,
                Ends(failing[cell], known[cell]),
                common=cell in line,
            )
            for cell in sorted(cells)
        ),
        edges=tuple(
            _edge(step, rows, line.issuperset(step), steps[step], runs) for step in ordered
        ),
        common=common,
        common_share=taken[common] / runs,
        paths=len(taken),
        runs=runs,
        task=task,
        parting=parting_step(ends),
    )


def common_path(taken: Mapping[Steps, int]) -> Steps:
    """Return the path that most runs took; of equals, the first by name.

    >>> common_path({("b",): 2, ("a",): 2, ("c",): 1})
    ('a',)
    """
    return min(taken, key=lambda path: (-taken[path], path))


def _alike_at_first(taken: Mapping[Steps, int]) -> int:
    """Return how many steps at the start share one box, because all runs have them: all but the
    last of them.
    """
    shared = same_at_first(min(taken), max(taken))
    longest = max(map(len, taken))
    return max(0, shared - 1) if longest + 2 > MAX_COLUMNS and shared > 2 else 0


def same_at_first(left: Steps, right: Steps) -> int:
    """Return how many steps two paths have in common before they part."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    )


def _shown(path: Steps, hidden: int) -> tuple[Cell, ...]:
    """Return the boxes that a path passes: its start, its steps, and its end or the end of the
    graph.
    """
    first = START if not hidden else f"{START} · {hidden} steps alike"
    steps = path[hidden:]
    kept = [first, *(f"={step}" for step in steps[: MAX_COLUMNS - 2])]
    kept.append(END if len(steps) <= MAX_COLUMNS - 2 else "…")
    return tuple(enumerate(kept))


def _rows_by_cell(passing: Mapping[Cell, int], common: frozenset[Cell]) -> dict[Cell, int]:
    """Return the row of every box: the common path is a straight line on top, below it the others,
    the most frequent first.
    """
    rows: dict[Cell, int] = {}
    for column in {column for column, _ in passing}:
        here = [cell for cell in passing if cell[0] == column]
        here.sort(key=lambda cell: (cell not in common, -passing[cell], cell))
        if len(here) > MAX_ROWS:
            here[MAX_ROWS - 1 :] = [(column, OTHERS)]
        rows.update(
            (cell, row) for row, cell in enumerate(here, start=0 if here[0] in common else 1)
        )
    return rows


def _box(cell: Cell, row: int, runs: int, of: int, ends: Ends, *, common: bool) -> Box:
    column, name = cell
    share = percent(runs / of)
    if name.startswith("="):
        step = name.removeprefix("=")
        kind = "common" if common else "off"
        label = clean(step, MAX_NAME)
        full = clean(step, 200)
    else:
        kind = "others" if name == OTHERS else "end"
        label = full = {END: "end", OTHERS: "other steps"}.get(name, name)
    title = f"{full}: {runs:,} of {of:,} runs, {share}"
    fails = None
    if ends.share is not None:
        fails = min(int(ends.share * LEVELS), LEVELS - 1)
        title += f"; {ends.failing:,} of {ends.known:,} fail"
        if name != START:
            share += f" · {percent(ends.share)} fail"
    return Box(EDGE + column * COLUMN, EDGE + row * ROW, label, title, share, kind, fails)


def _edge(step: Transition, rows: Mapping[Cell, int], common: bool, runs: int, of: int) -> Edge:
    column = step[0][0]
    x1 = EDGE + column * COLUMN + BOX_WIDTH
    x2 = EDGE + (column + 1) * COLUMN
    y1, y2 = (EDGE + rows[cell] * ROW + BOX_HEIGHT // 2 for cell in step)
    middle = (x1 + x2) // 2
    names = " → ".join(clean(name.removeprefix("="), MAX_NAME) for _, name in step)
    return Edge(
        path=f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}",
        width=round(1.5 + 10 * runs / of, 1),
        common=common,
        title=f"{names}: {runs:,} of {of:,} runs, {percent(runs / of)}",
    )
