"""Tables that explain the numbers: tools, decisions, tasks, effects, and where paths diverge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, cast

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.stability.branch_instability import likeness_of
from otel_reliability.metrics.stability.effect_agreement import EffectAgreement
from otel_reliability.metrics.uncertainty import SampleNumbers
from otel_reliability.model.row import OTHER_TASK, Row

RARE: Final = 0.2
"""A tool that fewer than one run in five uses is rare."""


class ToolUse(NamedTuple):
    """One tool: how many runs used it, their share of the runs, how many calls they made. `rare`:
    fewer than one run in five.
    """

    tool: str
    runs: int
    share: float
    calls: int
    rare: bool


def tool_use(rows: Iterable[Row]) -> list[ToolUse]:
    """The tools of all runs whose tools can be observed, the most used first.

    >>> from otel_reliability.testing import rows_of
    >>> found = tool_use(rows_of(*["search reply"] * 8, "search search reply", "search wipe reply"))
    >>> [(use.tool, use.share, use.calls) for use in found if use.rare]
    [('wipe', 0.1, 1)]
    """
    paths = [row.path for row in rows if row.path is not None and row.undisturbed]
    users = Counter(tool for path in paths for tool in path.tools)
    calls: Counter[str] = Counter()
    for path in paths:
        calls.update(dict(path.counts))
    uses = (
        ToolUse(tool, runs, share := runs / len(paths), calls[tool], share < RARE)
        for tool, runs in users.items()
    )
    return sorted(uses, key=lambda use: (-use.runs, use.tool))


class Turn(NamedTuple):
    """One way to go on: the next step (None: the run ends here), the runs that took it, and their
    share.
    """

    step: str | None
    runs: int
    share: float


class Divergence(NamedTuple):
    """The steps that all runs of a task (None: all runs) share, and the turns they take after them,
    the most frequent first.
    """

    task_id: str | None
    shared: tuple[str, ...]
    turns: tuple[Turn, ...]

    @property
    def deviating(self) -> int:
        """Number of runs that did not take the most frequent turn."""
        return sum(turn.runs for turn in self.turns[1:])


def first_divergence(
    paths: Sequence[tuple[str, ...]], task: str | None = None
) -> Divergence | None:
    """The longest common beginning of all paths, and how they go on; None if all are equal.

    >>> found = first_divergence([("search", "reply"), ("search", "reply"), ("search",)])
    >>> found.shared, [(turn.step, turn.runs) for turn in found.turns]
    (('search',), [('reply', 2), (None, 1)])
    """
    if len(set(paths)) <= 1:
        return None
    ends = zip(
        min(paths), max(paths), strict=False
    )  # what the least and the greatest share, all between them share
    shared = tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    steps = Counter(path[len(shared)] if len(path) > len(shared) else None for path in paths)
    turns = sorted(steps.items(), key=lambda turn: (-turn[1], turn[0] is None, turn[0] or ""))
    return Divergence(
        task, shared, tuple(Turn(step, runs, runs / len(paths)) for step, runs in turns)
    )


def divergences(rows: Iterable[Row], *, by_task: bool = True) -> list[Divergence]:
    """The first divergence of each task (of all runs together, where they have none), most
    deviating runs first.

    >>> from otel_reliability.testing import rows_of
    >>> rows = [
    ...     *rows_of("a", "b", task="x"),
    ...     *rows_of("a", "a", task="y"),
    ...     *rows_of("a b", "a c", "a d", task="z"),
    ... ]
    >>> [(found.task_id, found.shared, found.deviating) for found in divergences(rows)]
    [('z', ('a',), 2), ('x', (), 1)]
    """
    tasks: dict[str | None, list[tuple[str, ...]]] = {}
    for row in rows:
        if row.path is not None and row.undisturbed:
            tasks.setdefault(row.task if by_task else None, []).append(row.path.names)
    found = [first_divergence(paths, task) for task, paths in tasks.items()]
    return sorted(
        (one for one in found if one is not None),
        key=lambda one: (-one.deviating, one.task_id or ""),
    )


class Decision(NamedTuple):
    """One decision among runs of like input: the branches taken, the most frequent first, each with
    its runs.

    `kind` is `class` or `task`, `name` which one; both are empty where no run names its input.
    """

    kind: str
    name: str
    decision: str
    branches: Mapping[str, int]

    @property
    def deviating(self) -> int:
        """Number of runs that did not take the usual branch."""
        return sum(self.branches.values()) - max(self.branches.values())


def decision_table(rows: Iterable[Row]) -> list[Decision]:
    """The named decisions (`reliability.branch.<decision>`) that flipped, the one with most
    deviating runs first.

    >>> from otel_reliability.testing import row
    >>> branches = ("routine", "routine", "escalate", "routine", "escalate")
    >>> decision_table(
    ...     row(input_class="late order", branches={"triage": branch}) for branch in branches
    ... )
    [Decision(kind='class', name='late order', decision='triage',
              branches={'routine': 3, 'escalate': 2})]
    """
    taken: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        if row.undisturbed:
            kind, name = _named_likeness(row)
            for decision, branch in row.branches:
                taken.setdefault((kind, name, decision), Counter())[branch] += 1
    found = (
        Decision(*group, _by_runs(branches))
        for group, branches in taken.items()
        if len(branches) > 1
    )
    return sorted(found, key=lambda one: (-one.deviating, one[:3]))


def _named_likeness(row: Row) -> tuple[str, str]:
    """Return the kind and the name of what makes a run's input like others'; both empty where
    nothing does.
    """
    found = likeness_of(row)
    if isinstance(found, tuple):
        return cast("tuple[str, str]", found)
    return ("group", str(found)) if isinstance(found, int) else ("", "")


def _by_runs(branches: Counter[str]) -> dict[str, int]:
    return dict(sorted(branches.items(), key=lambda branch: (-branch[1], branch[0])))


class TaskRow(NamedTuple):
    """One task: its runs, and its metrics; None where they have no data. `task_id` None: the runs
    without a task.
    """

    task_id: str | None
    runs: int
    path_entropy: float | None
    path_entropy_bits: float | None
    modal_path_share: float | None
    distinct_paths: int | None
    path_similarity: float | None
    tool_variance: float | None
    tool_call_variation: float | None


_PER_TASK: Final = frozenset(TaskRow._fields[2:])
"""The names of its metrics."""


def task_table(rows: Iterable[Row], settings: Settings = DEFAULTS) -> list[TaskRow]:
    """A line for each task, in the order of their ids, and one for the runs without; empty if no
    run has a task.

    >>> from otel_reliability.testing import rows_of
    >>> for line in task_table([*rows_of("a", "b", task="refund"), *rows_of("a", task="order")]):
    ...     print(
    ...         line.task_id,
    ...         line.runs,
    ...         line.path_entropy,
    ...         line.distinct_paths,
    ...         line.path_similarity,
    ...     )
    order 1 None 1 None
    refund 2 1.0 2 0.0
    """
    tasks: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.undisturbed and row.task != OTHER_TASK:
            tasks.setdefault(row.task, []).append(row)
    if not tasks.keys() - {None}:
        return []
    return [
        _line(task, tasks[task], settings)
        for task in sorted(tasks, key=lambda task: (task is None, task or ""))
    ]


def _line(task: str | None, rows: list[Row], settings: Settings) -> TaskRow:
    numbers = SampleNumbers(settings, _PER_TASK)
    numbers.add(rows)
    values = {name: reading.value for name, reading in numbers.readings().items()}
    paths = values.pop("distinct_paths")
    return TaskRow(
        task, len(rows), distinct_paths=None if paths is None else round(paths), **values
    )


class Parting(NamedTuple):
    """An effect that some attempts had and others had not: the tool, and how many had it. Never its
    arguments: two lines of one tool are calls of it with different arguments.
    """

    tool: str
    attempts: int


class TaskEffects(NamedTuple):
    """One task: how many of its runs are compared, how far apart their effects are (0: all the
    same), and where they part, the most evenly split first; with the runs whose outcome is known,
    and how many of them failed.
    """

    task: str
    runs: int
    disagreement: float
    partings: tuple[Parting, ...]
    judged: int
    failed: int


def tasks_by_disagreement(rows: Iterable[Row], settings: Settings = DEFAULTS) -> list[TaskEffects]:
    """Return a line for each task of at least 2 runs, the least agreement first; of equals, by
    name.

    >>> from otel_reliability.testing import row
    >>> def attempt(task, *effects):
    ...     return row("", task=task, effects=frozenset((tool, b"1") for tool in effects))
    >>> rows = [
    ...     attempt("order", "pay"),
    ...     attempt("order", "pay"),
    ...     attempt("refund", "pay"),
    ...     attempt("refund", "pay", "cancel"),
    ... ]
    >>> for line in tasks_by_disagreement(rows):
    ...     print(line.task, line.disagreement, line.partings)
    refund 0.5 (Parting(tool='cancel', attempts=1),)
    order 0.0 ()
    """
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        if (
            row.task is not None
            and row.task != OTHER_TASK
            and row.effects is not None
            and row.undisturbed
        ):
            tasks.setdefault(row.task, []).append(row)
    lines = [
        _effects_of(task, attempts, settings)
        for task, attempts in tasks.items()
        if len(attempts) >= 2
    ]
    return sorted(lines, key=lambda line: (-line.disagreement, line.task))


def _effects_of(task: str, attempts: Sequence[Row], settings: Settings) -> TaskEffects:
    agreement = EffectAgreement(settings)
    for row in attempts:
        agreement.add(row)
    reading = agreement.value()
    known = [row.success for row in attempts if row.success is not None]
    disagreement = 0.0 if reading.value is None else 1.0 - reading.value
    return TaskEffects(
        task, reading.runs, disagreement, _partings(attempts), len(known), known.count(False)
    )


def _partings(attempts: Sequence[Row]) -> tuple[Parting, ...]:
    counts = Counter(effect for row in attempts for effect in row.effects or ())
    split = [Parting(tool, count) for (tool, _), count in counts.items() if count < len(attempts)]
    return tuple(
        sorted(
            split, key=lambda one: (abs(2 * one.attempts - len(attempts)), one.tool, -one.attempts)
        )
    )
