"""A report: the scorecards of a recording's agents, and what became of its spans."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.model.run import AgentKey
from otel_reliability.report.recording import Recording
from otel_reliability.report.scorecard import Scorecard, scorecard
from otel_reliability.report.text import clean, count, listed

DISPOSITIONS: Final = ("received", "used", "other", "late", "duplicate", "malformed", "refused")


class Report(NamedTuple):
    """What a recording tells.

    - `cards`: one an agent, in the order of their keys.
    - `spans`: what became of the spans; `reasons`: the same, by (what became of them, why).
    - `problems`: what could not be read, by reason; `evidence_refused`: attributes that could not stand, by (name, reason).
    - `notes`: what hit a ceiling, one sentence each.
    """

    cards: Sequence[Scorecard]
    spans: Mapping[str, int]
    reasons: Mapping[tuple[str, str], int]
    problems: Mapping[str, int]
    evidence_refused: Mapping[tuple[str, str], int]
    notes: Sequence[str]
    settings: Settings


INTERVALS_UP_TO: Final = 1_000
"""Runs of a window up to which intervals are computed unasked: about 3 s."""


def report_of(
    recording: Recording,
    agents: Iterable[str] = (),
    since_ns: int = 0,
    *,
    most_for_intervals: int = INTERVALS_UP_TO,
) -> Report:
    """The report on a closed recording: on the agents of those names (or shell patterns), and on the runs since then."""
    keys = chosen(recording.agents(), agents)
    engine = recording.engine
    return Report(
        cards=[card for key in keys if (card := _card(recording, key, since_ns, most_for_intervals)) is not None],
        spans={name: recording.spans[name] for name in DISPOSITIONS},
        reasons=engine.accounts,
        problems=recording.problems,
        evidence_refused=engine.refused_evidence,
        notes=_notes(recording),
        settings=recording.settings,
    )


def chosen(keys: Sequence[AgentKey], names: Iterable[str]) -> list[AgentKey]:
    """The agents that are meant by these names; all without any. Raises `ConfigurationError` for a name that is nobody's.

    >>> keys = [AgentKey("", "shop", "", "support"), AgentKey("", "shop", "", "refunds")]
    >>> [key.agent for key in chosen(keys, ["refund*"])]
    ['refunds']
    >>> chosen(keys, ["suport"])
    Traceback (most recent call last):
    otel_reliability.errors.ConfigurationError: --agent: 'suport' is not an agent with runs here; the nearest is support.
    """
    wanted = list(names)
    for name in wanted:
        if not any(_is(key, name) for key in keys):
            raise ConfigurationError("--agent", name, "an agent with runs here", nearest_agent(name, keys))
    return [key for key in keys if not wanted or any(_is(key, name) for name in wanted)]


def nearest_agent(name: str, keys: Iterable[AgentKey]) -> str:
    """Who might have been meant, as a remedy."""
    known = sorted({key.agent for key in keys})
    near = difflib.get_close_matches(name, known, n=3)
    if not known:
        return "there are no runs at all"
    if near:
        return f"the nearest {'are' if len(near) > 1 else 'is'} {listed(map(clean, near))}"
    return f"there are {listed(map(clean, known), 12)}"


def _is(key: AgentKey, name: str) -> bool:
    return key.agent == name or fnmatchcase(key.agent, name)


def _card(recording: Recording, key: AgentKey, since_ns: int, most_for_intervals: int) -> Scorecard | None:
    window = recording.window(key, since_ns)
    if window is None or not window.runs:
        return None
    sessions = recording.sessions(key, since_ns)
    return scorecard(key, window, sessions, recording.settings, most_for_intervals)


def _notes(recording: Recording) -> list[str]:
    return [
        f"the ceiling of {each.limit:,} {each.name.replace('_', ' ')} was hit {count(each.hits, 'time')}"
        for each in recording.engine.ceilings()
        if each.hits
    ]
