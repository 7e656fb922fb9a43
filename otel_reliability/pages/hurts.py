"""What hurts an agent's score most, in one sentence made of readings alone: a table of thousands can afford it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.model.reading import Reading
from otel_reliability.report.text import count, percent

WORTH_TELLING: Final = 1.0
"""Points from which a cost is what hurts."""

Ask = Callable[[str], Reading]
"""The reading of that name."""


class Hurt(NamedTuple):
    """The dearest part of a score: its name (None: nothing costs a point), the points, a sentence."""

    name: str | None
    points: float
    sentence: str


def hurt_of(ask: Ask) -> Hurt:
    """What costs most.

    >>> readings = dict.fromkeys(PENALTIES, Reading(0.0, 9)) | {"token_budget_pressure": Reading(0.9, 9)}
    >>> hurt_of(readings.__getitem__).sentence
    'The context window is 90 % full on average.'
    """
    known = {name: ask(name) for name in PENALTIES}
    costs = {name: PENALTIES[name] * reading.value for name, reading in known.items() if reading.value is not None}
    name = max(costs, key=costs.__getitem__, default=None)
    if name is None:
        return Hurt(None, 0.0, "No evidence for any part of the score yet.")
    if costs[name] < WORTH_TELLING:
        return Hurt(None, costs[name], "Nothing costs a point.")
    return Hurt(name, costs[name], _SENTENCES[name](known[name], ask))


def _paths(_: Reading, ask: Ask) -> str:
    distinct, usual = ask("distinct_paths"), ask("modal_path_share")
    if distinct.value is None or usual.value is None:
        return "The order of tool calls varies from run to run."
    return f"{count(round(distinct.value), 'path')} in {count(distinct.runs, 'run')}; {percent(usual.value)} took the usual one."


def _tools(reading: Reading, _: Ask) -> str:
    return f"Runs combine the tools differently ({percent(reading.value or 0.0)} tool variance)."


def _retries(reading: Reading, ask: Ask) -> str:
    share, longest = ask("retry_explosion_share"), ask("longest_retry_chain")
    if share.value is None or longest.value is None:
        return "A failing call was retried again and again."
    exploding = round(share.value * share.runs)
    return f"{exploding} of {count(share.runs, 'run')} kept retrying a failing call, up to {count(round(longest.value), 'time')}."


def _branches(reading: Reading, _: Ask) -> str:
    return f"Decisions flip although the input is alike ({percent(reading.value or 0.0)} branch instability)."


def _pressure(reading: Reading, _: Ask) -> str:
    return f"The context window is {percent(reading.value or 0.0)} full on average."


_SENTENCES: Final[dict[str, Callable[[Reading, Ask], str]]] = {
    "path_entropy": _paths,
    "tool_variance": _tools,
    "retry_explosion": _retries,
    "branch_instability": _branches,
    "token_budget_pressure": _pressure,
}
