"""Runs against their truth, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from otel_reliability.model.run import Run
from tests.corpora.recordings import TrueRun, Truth

OUTCOMES: Final = {"success": {"success", "completed"}, "failure": {"failure"}}
"""Success in a truth is that the framework returned normally, which is *completed* here."""


class Pair(NamedTuple):
    """A true run, and the run that is it."""

    true: TrueRun
    run: Run | None


class Matched(NamedTuple):
    """Every true run with its own, and the runs that are nobody's."""

    pairs: tuple[Pair, ...]
    ghosts: tuple[Run, ...]


def match(truth: Truth, runs: Sequence[Run]) -> Matched:
    """Match by root span, else by trace and path, else by trace alone; each run is matched once."""
    left = {run.run_id: run for run in runs}
    found: dict[str, Run] = {}
    for rule in (_same_root, _same_path, _same_trace):
        for true in truth.runs:
            if true.id not in found and (
                run := next((run for run in left.values() if rule(true, run)), None)
            ):
                found[true.id] = left.pop(run.run_id)
    return Matched(
        tuple(Pair(true, found.get(true.id)) for true in truth.runs), tuple(left.values())
    )


def _same_root(true: TrueRun, run: Run) -> bool:
    return run.root_span_id is not None and run.root_span_id.hex() in true.roots


def _same_path(true: TrueRun, run: Run) -> bool:
    return (
        _same_trace(true, run)
        and run.path is not None
        and sorted(run.path) == sorted(c.name for c in true.calls)
    )


def _same_trace(true: TrueRun, run: Run) -> bool:
    return run.trace_id.hex() in true.traces


def path_is_exact(true: TrueRun, run: Run) -> bool:
    """The tools in order, hand-offs left out. Calls issued together, in `parallel` all but the
    last, have no order.
    """
    if run.path is None:
        return False
    handoffs = {call.name for call in true.calls if call.handoff}
    told = [name for name in run.path if name not in handoffs and not name.startswith("→")]
    made = [call.name for call in true.calls if not call.handoff]
    if true.scenario == "parallel":
        return sorted(told[:-1]) == sorted(made[:-1]) and told[-1:] == made[-1:]
    return told == made


def handoffs_are_exact(true: TrueRun, run: Run) -> bool:
    """Each hand-off at its place in the path: as the tool call it was, or as `→agent`."""
    if run.path is None or len(run.path) != len(true.calls):
        return False
    return all(
        _is_handoff(call.name, told, true)
        for call, told in zip(true.calls, run.path, strict=True)
        if call.handoff
    )


def _is_handoff(name: str, told: str, true: TrueRun) -> bool:
    return told in {
        name,
        *("→" + agent for agent in (*true.sub_agents, name.removeprefix("transfer_to_"))),
    }


def failures_are_exact(true: TrueRun, run: Run) -> bool:
    """Which tools failed how often. A soft error (an error payload in a normal return) may show or
    not.
    """
    if run.tool_calls is None:
        return False
    failed = Counter(call.name for call in run.tool_calls if not call.ok)
    hard = Counter(call.name for call in true.calls if not call.ok and not call.soft)
    return hard <= failed <= hard + Counter(call.name for call in true.calls if call.soft)


def retries_are_exact(true: TrueRun, run: Run) -> bool:
    """How many calls repeat one that failed; of soft errors, as many as show."""
    if run.retries is None:
        return False
    return run.retries <= true.retries if true.has_soft_errors else run.retries == true.retries


def agents_of_steps_are_exact(true: TrueRun, run: Run) -> bool:
    """Which agent took each step, hand-offs left out."""
    if run.tool_calls is None:
        return False
    handoffs = {call.name for call in true.calls if call.handoff}
    told = Counter((call.name, call.agent) for call in run.tool_calls if call.name not in handoffs)
    return told == Counter((call.name, call.agent) for call in true.calls if not call.handoff)


@dataclass(frozen=True)
class Field:
    """One thing to compare: how, and of which runs."""

    is_exact: Callable[[TrueRun, Run], bool]
    concerns: Callable[[TrueRun], bool] = lambda _: True


FIELDS: Final[Mapping[str, Field]] = {
    "path": Field(path_is_exact),
    "hand-offs": Field(handoffs_are_exact, lambda true: any(call.handoff for call in true.calls)),
    "failed calls": Field(failures_are_exact),
    "retries": Field(retries_are_exact),
    "agent": Field(lambda true, run: run.key.agent == true.agent),
    "agents of steps": Field(agents_of_steps_are_exact),
    "session": Field(
        lambda true, run: run.session_id == true.session, lambda true: true.session is not None
    ),
    "tokens": Field(
        lambda true, run: (
            (run.input_tokens, run.output_tokens) == (true.input_tokens, true.output_tokens)
        )
    ),
    "outcome": Field(lambda true, run: run.outcome.value in OUTCOMES[true.outcome]),
}
