"""A unit: what change detection judges at once, a run or a whole session.

The turns of one conversation hang together, so they cannot be units of their own: a bet on the next turn would win without
any change. Where an agent's runs carry session ids, the session is the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.tool_calls import ToolCalls

Steps: TypeAlias = tuple[str, ...]

MAX_STEPS: Final = 1_000
"""Steps of a path that are kept: 40 reference paths then stay small, whatever an agent does."""
_FAILURES: Final = {Outcome.SUCCESS: 0, Outcome.FAILURE: 1}
_TOLD: Final[Callable[[Run], tuple[Any, ...]]] = itemgetter(
    *map(
        Run._fields.index,
        ("run_id", "start_ns", "end_ns", "path", "tool_calls", "model_calls", "output_tokens", "outcome", "task_id"),
    )
)
"""At once: to ask for the fields one by one takes as long as all the rest."""
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]


class Unit(NamedTuple):
    """The numbers of one unit. None: the telemetry gives no evidence, which is not 0.

    `failures` is the number of failed runs among those whose outcome is known. `largest_input` is the greatest input of
    one model call, in tokens: it tells a growing context where the sum over calls would not. `replies` is the number of
    model calls that tell their output tokens, `reply_tokens` the sum of these.
    """

    id: str
    start_ns: int
    end_ns: int
    path: Steps | None
    calls: int | None
    failed_calls: int | None
    output_tokens: int | None
    largest_input: int | None
    failures: int | None
    reply_tokens: int = 0
    replies: int = 0
    task: str | None = None


def counts_for_change(run: Run) -> bool:
    """Whether a run is judged at all: top-level, baseline and complete."""
    return not run.nested and not run.incomplete and run.condition == "baseline"


def unit_of(run: Run) -> Unit:
    """The numbers of one run."""
    run_id, start_ns, end_ns, path, calls, models, output_tokens, outcome, task = _TOLD(run)
    asked = ModelCalls.of(models)
    replies, reply_tokens = asked.replies
    fields = (
        run_id,
        start_ns,
        end_ns,
        None if path is None else path[:MAX_STEPS],
        None if calls is None else len(calls),
        None if calls is None else ToolCalls.of(calls).failed,
        output_tokens,
        asked.largest_input,
        _FAILURES.get(outcome),
        reply_tokens,
        replies,
        task,
    )
    unit: Unit = _tuple(Unit, fields)  # half of what calling the class takes
    return unit


def joined(session_id: str, parts: Sequence[Unit]) -> Unit:
    """The unit of a session: its runs' numbers summed, their paths joined, in the order of their ends.

    A number that one of the runs cannot give is absent: a sum of some of the turns would look like a change. Outcomes are
    summed over the runs that have one.
    """
    if len(parts) == 1:
        only = parts[0]
        return only._replace(id=session_id, path=None if only.path is None else only.path[:MAX_STEPS])
    ordered = in_order(parts)
    tasks = {part.task for part in ordered}
    return Unit(
        id=session_id,
        start_ns=min(part.start_ns for part in ordered),
        end_ns=ordered[-1].end_ns,
        path=_joined_path(ordered),
        calls=_sum(part.calls for part in ordered),
        failed_calls=_sum(part.failed_calls for part in ordered),
        output_tokens=_sum(part.output_tokens for part in ordered),
        largest_input=max((part.largest_input for part in ordered if part.largest_input is not None), default=None),
        failures=_sum_known(part.failures for part in ordered),
        reply_tokens=sum(part.reply_tokens for part in ordered),
        replies=sum(part.replies for part in ordered),
        task=tasks.pop() if len(tasks) == 1 else None,
    )


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Units in the order in which a file enters them: by end, then by id."""
    return sorted(units, key=lambda unit: (unit.end_ns, unit.id))


def _joined_path(parts: Sequence[Unit]) -> Steps | None:
    steps: list[str] = []
    for part in parts:
        if part.path is None:
            return None
        steps.extend(part.path)
    return tuple(steps[:MAX_STEPS])


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def _sum_known(numbers: Iterable[int | None]) -> int | None:
    known = _known(numbers)
    return sum(known) if known else None


def _known(numbers: Iterable[int | None]) -> list[int]:
    """Those that are told."""
    return [number for number in numbers if number is not None]
