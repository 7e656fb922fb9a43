"""Results of change detection: for each agent of recordings, whether its behaviour changed, and the
data behind the answer.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.change.alarm import Alarm, Summary
from otel_reliability.change.detector import BLIND
from otel_reliability.change.points import ChangePoint
from otel_reliability.change.recording import evaluate
from otel_reliability.change.result import Result
from otel_reliability.change.sentences import moment, of_alarm, of_point, of_recording
from otel_reliability.change.signals import ALL_SIGNALS
from otel_reliability.config import ChangeSettings
from otel_reliability.contrast.compare import LEVEL, Difference, compare
from otel_reliability.contrast.sample import Sample
from otel_reliability.contrast.sentences import headline, of_comparison, of_difference
from otel_reliability.model.letters import Letters
from otel_reliability.model.observation import Observation
from otel_reliability.model.run import AgentKey
from otel_reliability.reference import ReferenceByName, by_name
from otel_reliability.report.build import chosen, difference_view
from otel_reliability.report.json import plain
from otel_reliability.report.shift import LEVEL as LEVEL_OF_SHIFT
from otel_reliability.report.shift import about_shift, shift_of_window, with_shift
from otel_reliability.report.text import agent_name, clean, count, instant, percent, place
from otel_reliability.report.view import BEHAVIOUR, ChangeMark, ChangeView, Instant
from otel_reliability.windows.window import AgentWindow

MAX_SENTENCE: Final = 10_000
MIN_RUNS: Final = 20
"""Minimum runs of either of two recordings for a result: with fewer, that nothing differs shows
nothing.
"""
COMPARED_KINDS: Final = frozenset({"model", "version", "prompt"})
"""Kinds of change points before and after which the runs are compared."""
NOT_PINNED: Final = (
    "it has no observation in the reference recording, so its own first observations were "
    "the reference"
)
PINNED: Final = "measured against the reference recording"
BY_NAME: Final = "measured against the agent of that name in the reference recording"
SEVERAL: Final = (
    "several agents of that name are in the reference recording, none of its service and "
    "environment, so its own first "
    "observations were the reference"
)
NO_AGENT: Final = "there is no complete run of an agent here"
STATES: Final = {Result.CHANGED: "changed", Result.NO_CHANGE: "watching", Result.NO_RESULT: "none"}
SYMBOLS: Final = {
    Result.CHANGED: ("●", "yellow"),
    Result.NO_CHANGE: ("✓", "green"),
    Result.NO_RESULT: ("?", "dim"),
}
ABOUT: Final = (
    "an observation is a run, or a whole session where runs have one; changed is not worse "
    "(otel-reliability explain change)"
)

ObservationsOf: TypeAlias = Mapping[AgentKey, Sequence[Observation]]
SamplesOf: TypeAlias = Mapping[AgentKey, Sequence[Sample]]


class ChangeResult(NamedTuple):
    """The result for one agent. `key` None: there is no agent at all. `earlier`: its key in the
    earlier recording, if another.
    """

    key: AgentKey | None
    change: ChangeView
    earlier: AgentKey | None = None

    @property
    def name(self) -> str:
        """The agent in one line: `b (before: a)`."""
        if self.key is None:
            return "the recording"
        name = agent_name(self.key)
        earlier = self.earlier
        if earlier is None:
            return name
        return (
            f"{name} (before: "
            f"{agent_name(earlier) if earlier.agent != self.key.agent else place(earlier)})"
        )


def detected(
    observations: ObservationsOf,
    settings: ChangeSettings,
    pinned: ObservationsOf,
    names: Iterable[str] = (),
    samples: SamplesOf = MappingProxyType({}),
) -> list[ChangeResult]:
    """Return, for one recording, whether each agent changed in it; with a pinned reference, whether
    it differs from that. `samples` are the runs by which new models, versions and prompts
    are compared.
    """
    keys = chosen(sorted(observations), names)
    return [
        _detected(key, observations[key], settings, pinned, samples.get(key, ())) for key in keys
    ] or [_without_result(None, NO_AGENT)]


def with_shifts(
    findings: Sequence[ChangeResult], window_of: Callable[[AgentKey], AgentWindow | None]
) -> list[ChangeResult]:
    """Add to each result that is no change, or none, since when more or fewer of the runs fail."""
    return [_with_shift(one, window_of) for one in findings]


def _with_shift(
    finding: ChangeResult, window_of: Callable[[AgentKey], AgentWindow | None]
) -> ChangeResult:
    window = None if finding.key is None else window_of(finding.key)
    if window is None or finding.change.result is Result.CHANGED:
        return finding
    shift = shift_of_window(window)
    found = "" if shift is None else f"failures alone: {about_shift(shift)}"
    return finding._replace(change=with_shift(finding.change, shift, found))


def compared(before: SamplesOf, after: SamplesOf, names: Iterable[str] = ()) -> list[ChangeResult]:
    """Return, for two recordings, whether each agent behaves in the later as in the earlier.

    Agents are the same by service, environment and name; else by name, where no other has it; else
    where either recording has one agent only.
    """
    earlier = pairs(before, after)
    keys = chosen(sorted({*after, *(before.keys() - earlier.values())}), names)
    return [_compared(key, earlier.get(key), before, after) for key in keys] or [
        _without_result(None, NO_AGENT)
    ]


def since(observations: ObservationsOf, since_ns: int) -> ObservationsOf:
    """Return the observations that ended then or later, without agents that have none. 0: all of
    them.
    """
    if not since_ns:
        return observations
    latest = {
        key: [one for one in every if one.end_ns >= since_ns] for key, every in observations.items()
    }
    return {key: every for key, every in latest.items() if every}


def summary(findings: Sequence[ChangeResult]) -> str:
    """Return how many agents changed.

    >>> summary([ChangeResult(None, ChangeView(Result.NO_RESULT, "", "none"))])
    '1 without a result'
    """
    results = Counter(finding.change.result for finding in findings)
    words = {
        Result.CHANGED: "changed",
        Result.NO_CHANGE: "unchanged",
        Result.NO_RESULT: "without a result",
    }
    return ", ".join(
        f"{results[result]} {word}" for result, word in words.items() if results[result]
    )


def pairs(before: Iterable[AgentKey], after: Iterable[AgentKey]) -> dict[AgentKey, AgentKey]:
    """Return the agents of the later recording, each with its key in the earlier."""
    earlier = list(before)
    later = list(after)
    if len(earlier) == len(later) == 1:
        return {later[0]: earlier[0]}
    same = {key: key for key in later if key in earlier}
    left = by_name([key for key in earlier if key not in same])
    others = by_name([key for key in later if key not in same])
    return same | {others[name]: left[name] for name in others.keys() & left.keys()}


def marks(
    alarms: Sequence[Alarm],
    points: Iterable[ChangePoint],
    shifts: Mapping[ChangePoint, Sequence[Difference]] = MappingProxyType({}),
) -> tuple[ChangeMark, ...]:
    """Return alarms and change points as marks on a chart, in the order of time. `shifts` are the
    differences between the runs before and after a change point.
    """
    found = [
        ChangeMark(Instant(first.since_ns), _at(first.since_ns, of_alarm(alarm)))
        for alarm in alarms
        for first in alarm.signals[:1]
    ]
    found += [
        ChangeMark(
            Instant(point.at_ns),
            _at(
                point.at_ns,
                f"{of_point(point)}; since then {_shifts(shifts[point])}"
                if shifts.get(point)
                else of_point(point, alarms),
            ),
            point.kind,
        )
        for point in points
    ]
    return tuple(sorted(found, key=lambda mark: mark.since))


def _shifts(differences: Sequence[Difference]) -> str:
    return "; ".join(map(of_difference, headline(differences)))


def shifts_at(
    points: Sequence[ChangePoint], samples: Sequence[Sample]
) -> dict[ChangePoint, tuple[Difference, ...]]:
    """Return what differs between the runs before and after each new model, version or prompt.

    The runs since the change point before, and those until the next one, at least 20 each; with at
    most 4 % probability of any false difference over all change points together.
    """
    made = [point for point in points if point.kind in COMPARED_KINDS]
    found: dict[ChangePoint, tuple[Difference, ...]] = {}
    for at, point in enumerate(made):
        first = made[at - 1].at_ns if at else 0
        last = made[at + 1].at_ns if at + 1 < len(made) else None
        before = [one for one in samples if first <= one.end_ns < point.at_ns]
        after = [
            one
            for one in samples
            if one.end_ns >= point.at_ns and (last is None or one.end_ns < last)
        ]
        if min(len(before), len(after)) >= MIN_RUNS:
            compared = compare(before, after)
            found[point] = tuple(one for one in compared.differences if one.p <= LEVEL / len(made))
    return found


def _at(ns: int, sentence: str) -> str:
    return f"{moment(ns)}: {clean(sentence, MAX_SENTENCE)}"


def _detected(
    key: AgentKey,
    observations: Sequence[Observation],
    settings: ChangeSettings,
    pinned: ObservationsOf,
    samples: Sequence[Sample],
) -> ChangeResult:
    if not pinned:  # whose values have no letters
        letters = Letters()
        for one in observations:
            letters.add(one.fingerprints, one.start_ns, one.id)
        observations = [
            replace(one, fingerprints=letters.of(one.fingerprints)) for one in observations
        ]
    found = evaluate(observations, settings, pinned.get(key, ()))
    shifts = shifts_at(found.points, samples)
    since_command = ""
    if found.alarms:
        since_time = instant(found.alarms[-1].signals[0].since_ns)[:19]
        since_command = f"report --agent {shlex.quote(clean(key.agent))} --since {since_time}Z"
    view = ChangeView(
        result=found.result,
        sentence=clean(of_recording(found), MAX_SENTENCE),
        state=STATES[found.result],
        note=_measured_against(key, pinned) if pinned else "",
        evidence={
            "observations": found.observations,
            "alarms": [_alarm(alarm) for alarm in found.alarms],
            "change_points": [
                {
                    **_point(point),
                    "differences": [difference_view(one) for one in shifts.get(point, ())],
                }
                for point in found.points
            ],
        },
        marks=marks(found.alarms, found.points, shifts),
        since=since_command,
    )
    return ChangeResult(key, view)


def _measured_against(key: AgentKey, pinned: ObservationsOf) -> str:
    if not isinstance(pinned, ReferenceByName):
        return PINNED if key in pinned else NOT_PINNED
    found = pinned.matching(key)
    if found is None:
        return SEVERAL if pinned.is_ambiguous(key) else NOT_PINNED
    return PINNED if found == key else f"{BY_NAME} ({place(found)})"


def _compared(
    key: AgentKey, earlier: AgentKey | None, before: SamplesOf, after: SamplesOf
) -> ChangeResult:
    if earlier is None:
        return _without_result(
            key, f"it has no complete run in the {'earlier' if key in after else 'later'} recording"
        )
    found = compare(before[earlier], after[key])
    sentence = clean(of_comparison(found), MAX_SENTENCE)
    note = ""
    result = Result.CHANGED if found.differs else Result.NO_CHANGE
    if min(found.before, found.after) < MIN_RUNS:
        result = Result.NO_RESULT
        note = "" if found.differs is None else sentence
        sentence = (
            f"no result: either side needs {MIN_RUNS} complete runs; there are {found.before:,} "
            f"before and {found.after:,} after"
        )
    view = ChangeView(
        result=result,
        sentence=sentence,
        state=STATES[result],
        note=note,
        evidence={
            "differences": [difference_view(one) for one in found.differences],
            "detectable": found.detectable,
            "shared_tasks": found.shared_tasks,
        },
    )
    return ChangeResult(key, view, None if earlier == key else earlier)


def _without_result(key: AgentKey | None, why: str) -> ChangeResult:
    return ChangeResult(
        key, ChangeView(Result.NO_RESULT, f"no result: {why}", STATES[Result.NO_RESULT])
    )


# --- The data behind a sentence -------------------------------------------------------------------


def _alarm(alarm: Alarm) -> dict[str, Any]:
    signals = [
        {
            "signal": each.signal,
            "evidence": each.evidence,
            "since_observation": each.since_observation,
            "since": Instant(each.since_ns),
            **_sides(each.before, each.after),
        }
        for each in alarm.signals
    ]
    return {
        "observation": alarm.observation,
        "noticed": Instant(alarm.noticed_ns),
        "signals": signals,
        "tools": alarm.tools,
        "change_points": [_point(point) for point in alarm.points],
    }


def _point(point: ChangePoint) -> dict[str, Any]:
    names = {
        "observation": point.observation,
        "run_id": point.observation_id,
        "at": Instant(point.at_ns),
    }
    return {"kind": point.kind, "before": point.before, "after": point.after, **names}


def _sides(*sides: Summary | None) -> dict[str, dict[str, float] | None]:
    found = [
        None
        if side is None
        else {"observations": side.observations, "mean": side.mean, "median": side.median}
        for side in sides
    ]
    return dict(zip(("before", "after"), found, strict=True))


# --- JSON and terminal ----------------------------------------------------------------------------


def document(findings: Sequence[ChangeResult], settings: ChangeSettings) -> dict[str, Any]:
    """Return all results in plain values."""
    return {
        "summary": summary(findings),
        "signals": list(ALL_SIGNALS),
        "runs_per_false_alarm": settings.runs_per_false_alarm,
        "agents": [finding_object(finding) for finding in findings],
    }


def finding_object(finding: ChangeResult) -> dict[str, Any]:
    """Return one agent's result in plain values."""
    agent: dict[str, Any] = {"agent": None} if finding.key is None else plain(finding.key)
    earlier = {} if finding.earlier is None else {"earlier_agent": finding.earlier.agent}
    return {**agent, **earlier, **plain(finding.change)}


def render(findings: Sequence[ChangeResult], settings: ChangeSettings, console: Console) -> None:
    """Print a sentence for each agent, those that changed first, and how far it can be trusted."""
    order = list(SYMBOLS)
    for finding in sorted(findings, key=lambda one: order.index(one.change.result)):
        console.print(_agent(finding))
    console.print()
    console.print(Text(f"{count(len(findings), 'agent')}: {summary(findings)}", "bold"))
    console.print(Text(f"{ABOUT[0].upper()}{ABOUT[1:]}.", "dim"))
    if any("alarms" in finding.change.evidence for finding in findings):
        promise = (
            "While the work stays the same mix in random order, a false alarm comes once in "
            f"{settings.runs_per_false_alarm:,.0f} observations or less often. The first "
            f"{BLIND} observations, and {BLIND} after "
            "each alarm, are the baseline: they raise no alarm. Failures alone shift by chance in "
            f"at most {percent(LEVEL_OF_SHIFT)} of recordings."
        )
        console.print(Text(promise, "dim"))
    if any("differences" in finding.change.evidence for finding in findings):
        cases = f"in at most {percent(LEVEL)} of cases."
        console.print(
            Text(
                (
                    "Two recordings of the same behaviour at the same work are called "
                    f"different {cases}"
                ),
                "dim",
            )
        )


def _agent(finding: ChangeResult) -> RenderableType:
    symbol, colour = SYMBOLS[finding.change.result]
    where = "" if finding.key is None else place(finding.key)
    title = Text.assemble(
        (f"{symbol} ", colour), (finding.name, "bold"), (f"  {where}" if where else "", "dim")
    )
    return Group(title, *(Padding(line, (0, 0, 0, 2)) for line in lines(finding.change)))


def lines(change: ChangeView) -> list[Text]:
    """Return the sentence, the change points, the reference it was measured against, and the
    command that shows the agent since it changed.
    """
    more = [one.sentence for one in change.marks if one.kind != BEHAVIOUR]
    more += [change.note] if change.note else []
    more += [f"since then: {change.since}"] if change.since else []
    return [Text(change.sentence), *(Text(line, "dim") for line in more)]
