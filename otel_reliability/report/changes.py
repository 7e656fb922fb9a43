"""Recordings → what can be said of each agent: it changed, it did not, or there is no verdict, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.change.compare import Comparison, compare
from otel_reliability.change.observation import Observation
from otel_reliability.change.recording import RecordingResult, evaluate
from otel_reliability.change.result import Result
from otel_reliability.change.sentences import of_comparison, of_recording
from otel_reliability.config import ChangeSettings
from otel_reliability.model.run import AgentKey
from otel_reliability.reference import ByName
from otel_reliability.report.report import chosen
from otel_reliability.report.text import clean, count, place

LONGEST_SENTENCE: Final = 10_000
NOT_PINNED: Final = "it has no unit in the reference recording, so its own first units were the reference"
PINNED: Final = "measured against the reference recording"
BY_NAME: Final = "measured against the agent of that name in the reference recording"
SEVERAL: Final = (
    "several agents of that name are in the reference recording, none of its service and environment, so its own first units "
    "were the reference"
)

UnitsOf: TypeAlias = Mapping[AgentKey, Sequence[Observation]]


class Finding(NamedTuple):
    """What can be said of one agent. `key` None: there is no agent at all.

    `found` is the evidence: of one recording, or of two; None where there was nothing to look at. `earlier` is the agent's key in
    the earlier recording, where that is another.
    """

    key: AgentKey | None
    verdict: Result
    sentence: str
    found: RecordingResult | Comparison | None = None
    earlier: AgentKey | None = None
    note: str = ""


def judged(units: UnitsOf, settings: ChangeSettings, pinned: UnitsOf, names: Iterable[str] = ()) -> list[Finding]:
    """Of one recording: did each agent change somewhere in it? With a pinned reference, is it as it was there?"""
    keys = chosen(sorted(units), names)
    return [_judged(key, units[key], settings, pinned) for key in keys] or [_nobody()]


def compared(before: UnitsOf, after: UnitsOf, settings: ChangeSettings, names: Iterable[str] = ()) -> list[Finding]:
    """Of two recordings: does each agent behave in the later as in the earlier?

    Agents are the same by service, environment and name; else by name, where no other has it; else where either recording has
    one agent only.
    """
    earlier = pairs(before, after)
    keys = chosen(sorted({*after, *(before.keys() - earlier.values())}), names)
    return [_compared(key, earlier.get(key), before, after, settings) for key in keys] or [_nobody()]


def since(units: UnitsOf, since_ns: int) -> UnitsOf:
    """The units that ended then or later; agents without any are left out. 0: all of them."""
    if not since_ns:
        return units
    latest = {key: [unit for unit in every if unit.end_ns >= since_ns] for key, every in units.items()}
    return {key: every for key, every in latest.items() if every}


def summary(findings: Sequence[Finding]) -> str:
    """How many agents changed, in few words.

    >>> summary([Finding(AgentKey("", "shop", "", "a"), Result.CHANGED, ""), Finding(None, Result.NO_RESULT, "")])
    '1 changed, 1 without a verdict'
    """
    verdicts = Counter(finding.verdict for finding in findings)
    words = {Result.CHANGED: "changed", Result.NO_CHANGE: "unchanged", Result.NO_RESULT: "without a verdict"}
    return ", ".join(f"{verdicts[verdict]} {word}" for verdict, word in words.items() if verdicts[verdict])


def pairs(before: Iterable[AgentKey], after: Iterable[AgentKey]) -> dict[AgentKey, AgentKey]:
    """The agents of the later recording, with who they were in the earlier.

    >>> old, new, other = (
    ...     AgentKey("", "shop", where, name) for where, name in [("test", "a"), ("prod", "a"), ("prod", "b")]
    ... )
    >>> pairs([old], [new, other]) == {new: old}
    True
    """
    earlier, later = list(before), list(after)
    if len(earlier) == len(later) == 1:
        return {later[0]: earlier[0]}
    same = {key: key for key in later if key in earlier}
    left = _by_name(key for key in earlier if key not in same)
    others = _by_name(key for key in later if key not in same)
    return same | {others[name]: left[name] for name in others.keys() & left.keys()}


def _by_name(keys: Iterable[AgentKey]) -> dict[str, AgentKey]:
    every = list(keys)
    names = Counter(key.agent for key in every)
    return {key.agent: key for key in every if names[key.agent] == 1}


def _judged(key: AgentKey, units: Sequence[Observation], settings: ChangeSettings, pinned: UnitsOf) -> Finding:
    found = evaluate(units, settings, pinned.get(key, ()))
    note = _measured_against(key, pinned) if pinned else ""
    return Finding(key, found.result, clean(of_recording(found), LONGEST_SENTENCE), found, None, note)


def _measured_against(key: AgentKey, pinned: UnitsOf) -> str:
    if not isinstance(pinned, ByName):
        return PINNED if key in pinned else NOT_PINNED
    found = pinned.matching(key)
    if found is None:
        return SEVERAL if pinned.is_ambiguous(key) else NOT_PINNED
    return PINNED if found == key else f"{BY_NAME} ({place(found)})"


def _compared(
    key: AgentKey, earlier: AgentKey | None, before: UnitsOf, after: UnitsOf, settings: ChangeSettings
) -> Finding:
    if earlier is None:
        where = "earlier" if key in after else "later"
        return Finding(key, Result.NO_RESULT, f"no verdict: it has no unit in the {where} recording")
    old, new = before[earlier], after[key]
    found = compare(old, new, settings.signals)
    sizes = f"{count(len(old), 'unit')} before, {len(new):,} after"
    sentence = clean(of_comparison(found), LONGEST_SENTENCE)
    return Finding(key, found.result, sentence, found, None if earlier == key else earlier, sizes)


def _nobody() -> Finding:
    return Finding(None, Result.NO_RESULT, "no verdict: there is no complete run of an agent here")
