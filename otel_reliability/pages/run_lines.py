"""The last runs, each with its path, how unusual that is, and where it leaves the usual one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.run import Outcome, Run
from otel_reliability.pages.flow import Steps
from otel_reliability.report.text import clean, number, percent, seconds, trace_of

MOST_STEPS: Final = 14
"""Steps of a path that are shown."""
LONGEST: Final = 40
CUTS: Final = (0.001, 0.15, 0.35, 0.6)
"""Distances from which a path is a little, somewhat, rather, very unusual."""
DEGREES: Final = ("as usual", "a little unusual", "somewhat unusual", "rather unusual", "very unusual")


UsualPaths: TypeAlias = Mapping[str | None, Steps | None]
"""The usual path of each task, and under None of all runs; None where no path is usual."""


class Step(NamedTuple):
    """One step; `parts`: here the run leaves the usual path. `title` is the name in full."""

    name: str
    title: str
    parts: bool


class RunLine(NamedTuple):
    """One run. `degree` is how unusual its path is, from 0 to 4; None: nothing to compare it with."""

    trace: str
    end_ns: int
    task: str
    outcome: str
    duration: str
    distance: str
    degree: int | None
    words: str
    steps: tuple[Step, ...]
    more: int
    no_path: str
    retries: int
    pressure: str


def run_line(run: Run, distance: float | None, usual: UsualPaths) -> RunLine:
    """A run beside the usual path of its task (of all runs, where it has no task), which is never unusual itself."""
    path = run.path or ()
    expected = usual.get(run.task_id, usual.get(None))
    parts = None if expected is None else _parting(path, expected)
    degree = None if distance is None else 0 if run.path == expected else sum(distance >= cut for cut in CUTS)
    return RunLine(
        trace=trace_of(run.run_id),
        end_ns=run.end_ns,
        task="" if run.task_id is None else clean(run.task_id, LONGEST),
        outcome=run.outcome.value if run.outcome is not Outcome.UNKNOWN else "",
        duration=seconds(run.duration_s),
        distance=number(distance),
        degree=degree,
        words="nothing to compare it with" if degree is None else DEGREES[degree],
        steps=tuple(
            Step(clean(name, LONGEST), clean(name, 200), at == parts) for at, name in enumerate(path[:MOST_STEPS])
        ),
        more=max(0, len(path) - MOST_STEPS),
        no_path="its tools cannot be observed" if run.path is None else "no tool called" if not path else "",
        retries=run.retries or 0,
        pressure="" if run.token_pressure is None else percent(run.token_pressure),
    )


def _parting(path: Steps, usual: Steps) -> int | None:
    """The first step that the usual path does not have there; None where it is the usual path, or only ends sooner.

    >>> _parting(("a", "b"), ("a", "c")), _parting(("a",), ("a", "c"))
    (1, None)
    """
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, usual, strict=False)))
    return alike if alike < len(path) else None
