"""The last runs of an agent: which are chosen, how unusual each path is, where it leaves the common
one, and the steps of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.config import MetricSettings
from otel_reliability.contrast.sample import Sample, samples_of
from otel_reliability.engine import Engine
from otel_reliability.model.run import (
    AgentKey,
    Compression,
    ModelCall,
    Outcome,
    Run,
    ToolCall,
)
from otel_reliability.read_view import ReadView
from otel_reliability.report.run_fields import BriefFact, brief_of, made_of, tokens
from otel_reliability.report.text import clean, instant, seconds
from otel_reliability.report.view import AgentView
from otel_reliability.ui.flow import COMMON, Steps, common_path, same_at_first
from otel_reliability.ui.known_groups import KnownGroups

MAX_TOOLS: Final = 12
DEGREE_FROM: Final = (0.001, 0.15, 0.35, 0.6)
"""Distances from which a path is a little, somewhat, rather, very unusual."""
DEGREES: Final = (
    "common",
    "a little unusual",
    "somewhat unusual",
    "rather unusual",
    "very unusual",
)


class RunLine(NamedTuple):
    """A run, its path distance, how unusual that is, from 0 to 4 (None: the window has no other to
    compare it with), the first step at which it leaves the common path, its flags, and its facts
    in a list.
    """

    run: Run
    distance: float | None
    degree: int | None
    differs_at: int | None
    flags: Sequence[str]
    brief: Sequence[BriefFact]


def run_lines(agent: AgentView, runs: Sequence[Run] | None = None) -> list[RunLine]:
    """Return these runs of an agent, or its last whole ones, the newest first."""
    taken: dict[str | None, Counter[Steps]] = {}
    for (task, steps), number in agent.paths.items():
        for each in {task, None}:
            taken.setdefault(each, Counter())[steps] += number
    frequent = {task: common_path(paths) for task, paths in taken.items()}
    common = {
        task: path
        for task, path in frequent.items()
        if taken[task][path] >= COMMON * taken[task].total()
    }
    return [
        _run_line(agent, run, common.get(run.task_id if run.task_id in taken else None))
        for run in (agent.recent[::-1] if runs is None else runs)
    ]


def _run_line(agent: AgentView, run: Run, common: Steps | None) -> RunLine:
    """Compare a run with the common path of its task (of all runs, where it has no task), which is
    never unusual itself.
    """
    distance = agent.distances.get(run.run_id)
    differs_at = None if common is None else _first_difference(run.path or (), common)
    degree = (
        None
        if distance is None
        else 0
        if run.path == common
        else sum(distance >= cut for cut in DEGREE_FROM)
    )
    flags = [flag for flag, holds in FLAGS.items() if holds(run, agent.retry_threshold)]
    return RunLine(
        run=run,
        distance=distance,
        degree=degree,
        differs_at=differs_at,
        flags=flags,
        brief=brief_of(run),
    )


def _first_difference(path: Steps, common: Steps) -> int | None:
    """Return the first step that the common path does not have there; None where it is the common
    path, or ends sooner.

    >>> _first_difference(("a", "b"), ("a", "c")), _first_difference(("a",), ("a", "c"))
    (1, None)
    """
    same = same_at_first(path, common)
    return same if same < len(path) else None


class CallLine(NamedTuple):
    """One tool. `chain` is the longest chain of retries; `repeats` are calls that had succeeded."""

    tool: str
    calls: int
    failed: int
    retries: int
    chain: int
    repeats: int


def call_lines(runs: Iterable[Run]) -> list[CallLine]:
    """Return the tools of these runs, the most retried first.

    >>> from otel_reliability.testing import call, run
    >>> calls = (call("pay", ok=False), call("pay", retry=True, chain=1), call("look"))
    >>> [
    ...     (line.tool, line.calls, line.failed, line.retries)
    ...     for line in call_lines([run(["pay"], tool_calls=calls)])
    ... ]
    [('pay', 2, 1, 1), ('look', 1, 0, 0)]
    """
    tools: dict[str, list[ToolCall]] = {}
    for run in runs:
        for call in run.tool_calls or ():
            tools.setdefault(call.name, []).append(call)
    lines = [
        CallLine(
            tool=clean(tool),
            calls=len(calls),
            failed=sum(not call.ok for call in calls),
            retries=sum(call.retry for call in calls),
            chain=max(call.chain for call in calls),
            repeats=sum(call.repeat for call in calls),
        )
        for tool, calls in tools.items()
    ]
    lines.sort(
        key=lambda line: (-line.retries, -line.repeats, -line.failed, -line.calls, line.tool)
    )
    return lines[:MAX_TOOLS]


# --- Choosing runs --------------------------------------------------------------------------------

MAX_RUNS: Final = 200
"""Runs of one agent that a page lists."""
MAX_COMPARED: Final = 2_000
"""Runs of one agent among which a page finds one, or those of two versions or times."""
MAX_CONTRASTED: Final = 500
"""Runs of one agent, the newest, whose failures are explained."""
MAX_NS: Final = 2**63 - 1
FLAGS: Final[Mapping[str, Callable[[Run, int], bool]]] = {
    "failed calls": lambda run, _: any(not call.ok for call in run.tool_calls or ()),
    "retry explosion": lambda run, threshold: (run.longest_retry_chain or 0) >= threshold,
    "loop": lambda run, _: any(call.repeat for call in run.tool_calls or ()),
    "token pressure": lambda run, _: (run.token_pressure or 0.0) > MetricSettings.pressure_flag,
    "incomplete": lambda run, _: run.incomplete,
}
"""Marks that a run can have, given the setting `metrics.retry_threshold`."""


class RunChoice(NamedTuple):
    """The filters of a list of runs; times are ISO 8601, UTC where they name no zone, and `path` is
    a part of the path. `group` is the id of a kind of request; its runs are those of the window,
    which `RunStore.last` knows.
    """

    outcome: str = ""
    flag: str = ""
    path: str = ""
    version: str = ""
    since: str = ""
    until: str = ""
    group: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], prefix: str = "") -> RunChoice:
        """Read the query of an address. Invalid values are ignored.

        >>> RunChoice.of({"flag": "loop", "since": "2026-01-31", "until": "soon"})
        RunChoice(outcome='', flag='loop', path='', version='', since='2026-01-31', until='',
                  group='')
        """
        given = {name: query.get(prefix + name, "").strip()[:300] for name in cls._fields}
        return cls(**{name: value for name, value in given.items() if VALID[name](value)})

    @property
    def between(self) -> tuple[int, int]:
        """The first and the last end of a run, in nanoseconds."""
        until = _ns(self.until)
        return _ns(self.since) or 0, MAX_NS if until is None else until

    def holds(self, run: Run, retry_threshold: int) -> bool:
        since, until = self.between
        return (
            since <= run.end_ns <= until
            and self.outcome in {"", run.outcome.value}
            and (not self.version or self.version in made_of(run))
            and (not self.flag or FLAGS[self.flag](run, retry_threshold))
            and (not self.path or self.path.casefold() in path_text(run).casefold())
        )


ALL_RUNS: Final = RunChoice()


def path_text(run: Run) -> str:
    """Return the path of a run as people write it: `search → book`."""
    return " → ".join(run.path or ())


def _ns(moment: str) -> int | None:
    """Return the nearest time that a database can compare; None for what is no time."""
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    seconds = round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    return min(max(seconds * 10**9, 0), MAX_NS)


VALID: Final[Mapping[str, Callable[[str], bool]]] = {
    "outcome": {outcome.value for outcome in Outcome}.__contains__,
    "flag": FLAGS.__contains__,
    "path": bool,
    "version": bool,
    "group": bool,
    "since": lambda text: _ns(text) is not None,
    "until": lambda text: _ns(text) is not None,
}

Stored: TypeAlias = Callable[[AgentKey, int, int, int], list[Run]]
"""Return the newest stored runs of an agent that ended between two times (ns), at most so many."""


class RunStore:
    """The last whole runs of agents: those in memory, and those of the state directory where there
    is one.
    """

    def __init__(self, engine: Engine, stored: Stored, groups: KnownGroups) -> None:
        self._engine = engine
        self._groups = groups
        self._stored = stored

    def last(self, key: AgentKey, choice: RunChoice = ALL_RUNS, most: int = MAX_RUNS) -> list[Run]:
        """Return the newest runs that are chosen among the last `most` of the time that is chosen,
        the newest first.
        """
        found = {run.run_id: run for run in self._stored(key, most, *choice.between)}
        found |= {
            run.run_id: run for run in self._engine.read(lambda view: _recent(view, key)) or ()
        }
        newest = sorted(found.values(), key=lambda run: (run.end_ns, run.run_id), reverse=True)
        threshold = self._engine.settings.metrics.retry_threshold
        chosen = [run for run in newest if choice.holds(run, threshold)]
        if choice.group:
            members = self._engine.read(lambda view: self._groups.runs_of(view, key, choice.group))
            chosen = [run for run in chosen if run.run_id in (members or ())]
        return chosen[:most]

    def samples(self, key: AgentKey) -> list[Sample]:
        """Return what contrasts need of the newest runs."""
        return samples_of(self.last(key, most=MAX_CONTRASTED))


def versions_of(runs: Iterable[Run]) -> list[str]:
    """Return the versions, models, prompts and so on with which runs were made, those of the first
    run first.

    >>> from otel_reliability.testing import run
    >>> versions_of(
    ...     [
    ...         run(fingerprints=(("model", "m"), ("version", "2"))),
    ...         run(fingerprints=(("version", "1"),)),
    ...     ]
    ... )
    ['2', 'model m', '1']
    """
    return list(dict.fromkeys(name for run in runs for name in made_of(run)))


def default_sides(runs: Sequence[Run]) -> list[RunChoice]:
    """Return what is compared by default: the two newest versions, else the older and the newer
    half of the runs.
    """
    versions = list(
        dict.fromkeys(
            value for run in runs for kind, value in run.fingerprints if kind == "version"
        )
    )
    if len(versions) > 1:
        return [RunChoice(version=versions[1]), RunChoice(version=versions[0])]
    middle = instant(runs[len(runs) // 2].end_ns)[:19] if runs else ""
    return [RunChoice(until=middle), RunChoice(since=middle)]


def _recent(view: ReadView, key: AgentKey) -> list[Run]:
    state = view.agent(key)
    return [] if state is None else list(state.recent)


# --- One run --------------------------------------------------------------------------------------


class StepLine(NamedTuple):
    """A step of a run: when it began after the run did, how long it took, what it was, and how it
    went.
    """

    after: str
    lasted: str
    kind: str
    name: str
    agent: str
    result: str
    tokens: str


def steps_of(run: Run) -> list[StepLine]:
    """Return every tool call, model call and compression of a run, in the order in which they
    began.

    >>> from otel_reliability.testing import call, run
    >>> [
    ...     (step.name, step.result)
    ...     for step in steps_of(run(["pay"], tool_calls=(call("pay", ok=False),)))
    ... ]
    [('pay', 'failed')]
    """
    steps = [*(run.tool_calls or ()), *run.model_calls, *run.compressions]
    return [_step(run, step) for step in sorted(steps, key=lambda step: step.start_ns)]


def _step(run: Run, step: ToolCall | ModelCall | Compression) -> StepLine:
    match step:
        case ToolCall():
            kind = "tool"
            name = step.name
            result = _result(step)
            size = ""
        case ModelCall():
            kind = "model"
            name = step.model or "unknown model"
            result = "failed" if step.failed else "ok"
            size = tokens(step.input_tokens, step.output_tokens)
        case Compression():
            kind = "compression"
            result = "ok" if step.ok else "failed"
            name = "context compression" + (f" ({step.trigger})" if step.trigger else "")
            size = " → ".join(
                f"{size:,}" for size in (step.tokens_before, step.tokens_after) if size is not None
            )
    after = (step.start_ns - run.start_ns) / 1e9
    lasted = (step.end_ns - step.start_ns) / 1e9
    agent = "" if step.agent == run.key.agent else clean(step.agent)
    return StepLine(f"+{seconds(after)}", seconds(lasted), kind, clean(name), agent, result, size)


def _result(call: ToolCall) -> str:
    again = (
        f", retry {call.chain}"
        if call.retry
        else ", repeats a call that succeeded"
        if call.repeat
        else ""
    )
    return ("ok" if call.ok else "failed") + again
