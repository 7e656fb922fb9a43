"""Targets → verdicts: does this recording hold what was demanded of it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from otel_reliability.change import result as change
from otel_reliability.errors import ConfigurationError
from otel_reliability.metrics.passes.summary import TARGETS
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.quantities import nearest
from otel_reliability.report.changes import Finding
from otel_reliability.report.doubt import doubt, few_runs
from otel_reliability.report.report import Report, nearest_agent
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.target import OF_SPANS, SERIES, Target
from otel_reliability.report.text import count


class State(Enum):
    """What became of a target, and the exit code it asks for."""

    HELD = 0
    FAILED = 1
    MISSING = 3


class Verdict(NamedTuple):
    """One number held against a target. `card` None: of the whole recording, or nobody's.

    `why` says what is missing, `doubt` why the runs do not decide it.
    """

    target: Target
    card: Scorecard | None
    task: str | None
    reading: Reading
    state: State
    why: str = ""
    doubt: str = ""


class Unchanged(NamedTuple):
    """The demand that an agent has not changed, held against what was found of it."""

    finding: Finding

    @property
    def state(self) -> State:
        """A change fails it; without a verdict evidence is missing."""
        return OF_CHANGE[self.finding.verdict]


class Found(NamedTuple):
    """A number that a target names."""

    card: Scorecard | None
    task: str | None
    reading: Reading


OF_CHANGE: Final = {
    change.Result.CHANGED: State.FAILED,
    change.Result.NO_CHANGE: State.HELD,
    change.Result.NO_RESULT: State.MISSING,
}
PRECEDENCE: Final = (State.FAILED, State.MISSING, State.HELD)


def judge(report: Report, targets: Sequence[Target], min_runs: int) -> list[Verdict]:
    """The verdicts on all targets, in their order; of one target, agent by agent and task by task.

    Raises `ConfigurationError` for a target on an agent or a task that is not there.
    """
    return [
        _verdict(target, found, min_runs)
        for target in targets
        for found in (_numbers(report, target) or _nobody(target))
    ]


def exit_code(verdicts: Sequence[Verdict | Unchanged]) -> int:
    """1 for a failed target, else 3 where evidence is missing, else 0."""
    states = {verdict.state for verdict in verdicts}
    return next((state.value for state in PRECEDENCE if state in states), 0)


def summary(verdicts: Sequence[Verdict | Unchanged]) -> str:
    """How many targets held, failed, and could not be judged.

    >>> summary([])
    'nothing to judge'
    """
    states = Counter(verdict.state for verdict in verdicts)
    words = ((State.FAILED, "failed"), (State.MISSING, "without evidence"), (State.HELD, "held"))
    return ", ".join(f"{states[state]} {word}" for state, word in words if states[state]) or "nothing to judge"


def warning(verdicts: Sequence[Verdict]) -> str:
    """What the fewest runs behind any verdict can tell; empty where they are many."""
    runs = [each.reading.runs for each in verdicts if each.state is not State.MISSING and each.card is not None]
    return few_runs(min(runs)) if runs else ""


# --- The numbers a target names --------------------------------------------------------------------------------------


def _numbers(report: Report, target: Target) -> list[Found]:
    if target.name in OF_SPANS:
        received = report.spans["received"]
        return [Found(None, None, Reading(float(report.spans[target.name.partition(".")[2]]), received))]
    cards = [card for card in report.cards if target.agent in {None, card.key.agent}]
    if report.cards and not cards:
        keys = [card.key for card in report.cards]
        raise ConfigurationError(
            "--require", target.agent, "an agent with runs here", nearest_agent(str(target.agent), keys)
        )
    found = [each for card in cards for each in _of_card(card, target)]
    if cards and not found and target.task is not None:
        tasks = sorted({row.task for card in cards for row in card.rows if row.task is not None})
        raise ConfigurationError("--require", target.task, "a task with runs here", nearest(target.task, tasks))
    return found


def _of_card(card: Scorecard, target: Target) -> Iterator[Found]:
    if target.name in TARGETS:
        for task, each in card.passes.summaries.items():
            if target.task in {None, task}:
                yield Found(card, task, Reading(each.metrics_object()[target.name], each.runs))
        if not card.passes.summaries and target.task is None:
            yield Found(card, None, NO_EVIDENCE)
    elif target.task is not None:
        for line in card.tasks:
            if line.task_id == target.task:
                yield Found(card, target.task, Reading(line._asdict()[target.name], line.runs))
    else:
        yield Found(card, None, _of_agent(card, target.name))


def _of_agent(card: Scorecard, name: str) -> Reading:
    series, _, k = name.partition(".")
    if series in SERIES and k:
        return (card.passes.at if series == "pass_at_k" else card.passes.hat).get(int(k), NO_EVIDENCE)
    return card.readings[name]


def _nobody(target: Target) -> list[Found]:
    return [Found(None, None, NO_EVIDENCE)]


# --- The verdict ------------------------------------------------------------------------------------------------------


def _verdict(target: Target, found: Found, min_runs: int) -> Verdict:
    card, task, reading = found
    if reading.value is None:
        return Verdict(target, card, task, reading, State.MISSING, _missing(target, found))
    if reading.runs < min_runs and target.name not in OF_SPANS:
        why = f"{count(reading.runs, 'run')}, fewer than --min-runs {min_runs}"
        return Verdict(target, card, task, reading, State.MISSING, why)
    state = State.HELD if target.holds(reading.value) else State.FAILED
    return Verdict(target, card, task, reading, state, "", "" if card is None else doubt(target, card, task))


def _missing(target: Target, found: Found) -> str:
    if found.card is None:
        return "no agent has a run here"
    if found.reading.note:
        return f"no evidence: {found.reading.note}"
    spec = ALL_SPECS.get(target.name.partition(".")[0] if target.name not in ALL_SPECS else target.name)
    outcomes = "1 run with a known outcome"
    return f"no evidence; it needs {outcomes if target.name in TARGETS or spec is None else spec.evidence}"
