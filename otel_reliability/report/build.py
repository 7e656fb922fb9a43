"""The builder of views: readings and windows → `ReportView`, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.contrast.compare import Difference, compare
from otel_reliability.contrast.parting import NONE as NO_ENDS
from otel_reliability.contrast.parting import Ends
from otel_reliability.contrast.sample import Sample
from otel_reliability.contrast.sentences import of_comparison, of_difference, of_finding, of_why
from otel_reliability.contrast.why import ERRING, Why, why_runs_fail, why_runs_stand_out
from otel_reliability.contrast.why import Finding as WhyFound
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import nearest
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.base import one_sided
from otel_reliability.metrics.passes.attempts import attempts_of
from otel_reliability.metrics.passes.series import PassAtK, PassHatK
from otel_reliability.metrics.passes.summary import summaries
from otel_reliability.metrics.stability.tables import task_table
from otel_reliability.metrics.stability.tier import tier_of
from otel_reliability.metrics.success.verdict import assess
from otel_reliability.metrics.uncertainty import intervals
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row
from otel_reliability.model.run import HASHED, AgentKey, Outcome, Run
from otel_reliability.price_table import table_date
from otel_reliability.recording import Recording
from otel_reliability.report.badge import success_half
from otel_reliability.report.badge import text as badge_text
from otel_reliability.report.compression import compression_of
from otel_reliability.report.data_quality import quality_of_rows, quality_of_spans
from otel_reliability.report.failing_work import failing_work, fails
from otel_reliability.report.findings import findings_of, path_distances
from otel_reliability.report.groups import groups_of_agents, lettered
from otel_reliability.report.history import recorded_history
from otel_reliability.report.missing import missing_of, models_without_limit
from otel_reliability.report.request_groups import Known, learned, names_of, request_groups
from otel_reliability.report.sections import EVALUATION_FAMILIES
from otel_reliability.report.shift import OTHER_WORK, ends_of, shift_of, with_shift
from otel_reliability.report.text import clean, count, listed, trace_of
from otel_reliability.report.view import (
    VERSION,
    AgentComparison,
    AgentView,
    Baseline,
    Chance,
    ChangeView,
    ComparedReading,
    ContrastView,
    DifferenceView,
    FailureShift,
    GroupView,
    Instant,
    Passes,
    ReadingView,
    ReportView,
    ScorePoint,
    SideView,
    TaskAttempts,
    WhyFinding,
)
from otel_reliability.report.words import caveats_of
from otel_reliability.statistics.intervals import Interval
from otel_reliability.statistics.significance import OF_NUMBERS, Estimate, p_values_of
from otel_reliability.windows.session_scores import LAST, RecentSessions, SessionScores
from otel_reliability.windows.window import AgentWindow

DISPOSITIONS: Final = ("received", "used", "other", "late", "duplicate", "malformed", "refused")
MAX_RUNS_FOR_INTERVALS: Final = 1_000
"""Runs of a window up to which intervals are computed by default: about 3 ms a run."""
SAME_BELOW: Final = 1e-9
"""A difference smaller than this is the noise of adding floats."""
BEFORE_AND_NOW: Final = ("before", "now")
MAX_SENTENCE: Final = 2_000
CORRECTION: Final = "Holm"
"""Correction for the number of numbers that are compared: without it one of them would differ by
chance alone.
"""


class AgentSource(NamedTuple):
    """The data of one agent that its view is built from.

    `window` holds the runs that are examined (at least one), `rows` all that count and `readings`
    their numbers: a service examines only the newest of a long window. `recent` are whole runs,
    oldest first; `known_groups` the groups with alike requests that have a letter already.
    """

    key: AgentKey
    window: AgentWindow
    rows: Sequence[Row]
    readings: Mapping[str, Reading]
    left_out: int
    sessions: Sequence[SessionScores]
    samples: Sequence[Sample] = ()
    recent: Sequence[Run] = ()
    history: Sequence[ScorePoint] = ()
    change: ChangeView | None = None
    exceeding: Sequence[str] = ()
    known_groups: Known = ()


# --- A report on a recording ----------------------------------------------------------------------


def report_of(
    recording: Recording,
    agents: Iterable[str] = (),
    since_ns: int = 0,
    *,
    max_runs_for_intervals: int = MAX_RUNS_FOR_INTERVALS,
    changes: Mapping[AgentKey | None, ChangeView] = {},
    earlier: Recording | None = None,
    split: bool = False,
    for_people: bool = False,
) -> ReportView:
    """Return the report on a closed recording: on the agents of those names (or shell patterns),
    and on the runs since then.

    `changes` are the results of change detection, `earlier` is a recording to compare with (all of
    it). `split`: the recording is split by a kind of fingerprint, and the groups of each agent are
    compared with its first one. `for_people` adds what only terminals and pages draw: the score
    over time and the last whole runs.
    """
    engine = recording.engine
    settings = recording.settings
    views: list[AgentView] = []
    for source in _recorded(
        recording, chosen(recording.agents(), agents), since_ns, for_people=for_people
    ):
        watched = source._replace(change=changes.get(source.key))
        views.append(agent_view(watched, settings, max_runs_for_intervals))
    compared_with = None
    if earlier is not None:
        olds = _recorded(earlier, earlier.agents(), 0, for_people=False)
        compared_with = _compared_with(olds, views, settings, max_runs_for_intervals)
    elif split:
        views = lettered(views)
        compared_with = _groups_compared(views)
    return ReportView(
        version=VERSION,
        agents=views,
        spans={name: recording.spans[name] for name in DISPOSITIONS},
        span_reasons=_by_reason(engine.accounts),
        problems=dict(recording.problems),
        attributes_refused=_by_reason(engine.refused_attributes),
        data_quality=quality_of_spans(
            engine.accounts,
            recording.spans["received"],
            recording.problems.total(),
            engine.lost_annotations,
        ),
        notes=[
            (
                f"The limit of {each.limit:,} {each.name.replace('_', ' ')} was reached "
                f"{count(each.hits, 'time')}"
            )
            for each in engine.limits()
            if each.hits
        ],
        baseline=compared_with,
    )


def chosen(keys: Sequence[AgentKey], names: Iterable[str]) -> list[AgentKey]:
    """Return the agents with these names; all without any. Raises `ConfigurationError` for a name
    that no agent has.
    """
    wanted = list(names)
    for name in wanted:
        if not any(is_named(key, name) for key in keys):
            raise ConfigurationError(
                "--agent",
                name,
                "an agent with runs here",
                nearest_agent(name, (key.agent for key in keys)),
            )
    return [key for key in keys if not wanted or any(is_named(key, name) for name in wanted)]


def is_named(key: AgentKey, name: str) -> bool:
    """Return whether the agent has this name, or one that matches this shell pattern."""
    return key.agent == name or fnmatchcase(key.agent, name)


def nearest_agent(name: str, agents: Iterable[str]) -> str:
    """Return the agents that may have been meant, as a remedy."""
    known = sorted(set(map(clean, agents)))
    return nearest(name, known) if known else "there are no runs at all"


def _recorded(
    recording: Recording, keys: Iterable[AgentKey], since_ns: int, *, for_people: bool
) -> Iterator[AgentSource]:
    for key in keys:
        window = recording.window(key, since_ns)
        state = recording.engine.view.agent(key)
        if window is None or state is None or not window.runs:
            continue
        rows = window.rows()
        yield AgentSource(
            key=key,
            window=window,
            rows=rows,
            readings=window.readings(),
            left_out=window.left_out,
            sessions=recording.sessions(key, since_ns),
            samples=recording.samples(key, since_ns),
            recent=tuple(state.recent) if for_people else (),
            history=recorded_history(rows, recording.settings) if for_people else (),
        )


def _by_reason(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Nest counts by (what, why) as {what: {why: count}}; those without a reason are in the totals
    already.
    """
    found: dict[str, dict[str, int]] = {}
    for (what, why), number in sorted(counts.items()):
        if why and number:
            found.setdefault(what, {})[why] = number
    return found


# --- One agent ------------------------------------------------------------------------------------


def agent_view(source: AgentSource, settings: Settings, max_runs_for_intervals: int) -> AgentView:
    """Return the view of an agent. Intervals are computed for windows of at most
    `max_runs_for_intervals` runs, all of which are examined: an interval about the newest runs
    alone need not contain a value about all of them.
    """
    sample = source.window.rows()
    undisturbed = [row for row in source.rows if row.undisturbed]
    readings = {**source.readings, **_session_readings(source.sessions)}
    all_examined = len(sample) == len(source.rows)
    has_intervals = all_examined and len(sample) <= max_runs_for_intervals
    metrics = _metrics(readings, intervals(sample, settings) if has_intervals else {}, undisturbed)
    score = metrics["score"].value
    success_rate = metrics["success_rate"].value
    error_rate = metrics["error_rate"].value
    assessment = assess(readings.__getitem__)
    tier = None if score is None else tier_of(score)
    outcomes = Counter(row.outcome for row in undisturbed)
    first = min(source.rows, key=lambda row: (row.start_ns, row.run_id))
    known = outcomes[Outcome.SUCCESS] + outcomes[Outcome.FAILURE]
    tasks = task_table(sample, settings)
    compression = compression_of([row for row in sample if row.undisturbed])
    known_groups = source.known_groups or learned((), sample)
    why = why_runs_fail(source.samples)
    outcomes_known = success_rate is not None
    ends = ends_of(undisturbed, outcomes_known=outcomes_known)
    shift = shift_of(ends, undisturbed, outcomes_known=outcomes_known)
    work_that_fails = failing_work(
        undisturbed, names_of(sample, known_groups), by_error=why.question is ERRING
    )
    distances = path_distances(sample, source.window.path_distances)
    view = AgentView(
        key=source.key,
        verdict=assessment.verdict,
        grade=assessment.grade,
        success_rate=success_rate,
        error_rate=error_rate,
        runs=len(undisturbed),
        perturbed_runs=dict(Counter(row.condition for row in source.rows if not row.undisturbed)),
        start=Instant(first.start_ns),
        first_run=first.run_id,
        end=Instant(source.rows[-1].end_ns),
        runs_left_out=source.left_out,
        score=score,
        score_coverage=metrics["score_coverage"].value,
        score_note=metrics["score"].note,
        tier=tier,
        badge=badge_text(score, success=success_half(readings.__getitem__)) or None,
        flags=metrics["flag"].parts,
        outcomes={outcome.value: outcomes[outcome] for outcome in Outcome}
        | {"by_status": sum(row.by_status for row in undisturbed)},
        metrics=metrics,
        evaluation=_evaluation(metrics, settings.metrics.profile),
        passes=_passes(source.window, sample),
        sessions=source.sessions,
        tasks=tasks,
        findings=findings_of(
            sample,
            metrics,
            distances,
            settings,
            compression,
            has_tasks=bool(tasks),
            failed_tools=_failed_tools(undisturbed, source.samples),
        ),
        missing=missing_of(source.rows),
        data_quality=quality_of_rows(source.rows),
        caveats=(),
        change=source.change and with_shift(source.change, shift, _found_alone(shift)),
        shift=shift,
        compression=compression,
        why=[*work_that_fails, *(_why_finding(one, why) for one in why.findings)],
        why_note=of_why(why, more=bool(work_that_fails)) if why.failing else "",
        contrasts=[
            ContrastView(
                one.question.name, of_why(one), [_why_finding(each, one) for each in one.findings]
            )
            for one in why_runs_stand_out(source.samples, distances)
        ],
        request_groups=request_groups(sample, known_groups),
        price_table=_price_table(undisturbed) if settings.estimate_cost else "",
        task_count=len({row.task for row in source.rows if row.task is not None}),
        one_sided=one_sided(len(undisturbed), known, outcomes[Outcome.SUCCESS]),
        task_outcomes=_task_outcomes(undisturbed),
        paths=Counter((row.task, row.path.names) for row in undisturbed if row.path is not None),
        path_ends=_path_ends(undisturbed, by_error=why.question is ERRING),
        distances=distances,
        pressures={row.run_id: row.pressure for row in undisturbed if row.pressure is not None},
        retry_threshold=settings.metrics.retry_threshold,
        samples=source.samples,
        history=source.history,
        ends=ends,
        exceeding=source.exceeding,
        recent=source.recent,
    )
    return replace(view, caveats=caveats_of(view, source.rows))


def _found_alone(shift: FailureShift | None) -> str:
    """Return the shift of failures in short: a report has both sides of it next to this."""
    if shift is None:
        return ""
    why = OTHER_WORK if shift.other_work else ""
    return f"failures alone changed, since run {shift.run:,}{why}"


def _failed_tools(undisturbed: Sequence[Row], samples: Sequence[Sample]) -> Counter[str]:
    """Return in how many of these runs that have a sample a call of each tool fails."""
    examined = {row.run_id for row in undisturbed if row.failed_calls}
    return Counter(tool for one in samples if one.run_id in examined for tool in one.failed)


def _metrics(
    readings: Mapping[str, Reading], bounds: Mapping[str, Interval], undisturbed: Sequence[Row]
) -> dict[str, ReadingView]:
    """Return each metric with its interval, where it has one, and why pressure is unknown."""
    metrics = {
        name: ReadingView(*readings[name], *bounds.get(name, (None, None, "")))
        for name in ALL_SPECS
    }
    pressure = metrics["token_budget_pressure"]
    if pressure.value is None and any(row.tokens is not None for row in undisturbed):
        models = listed(models_without_limit(undisturbed)) or "the models"
        metrics["token_budget_pressure"] = replace(
            pressure, note=f"no context limit is known for {models}"
        )
    return metrics


def _path_ends(
    rows: Sequence[Row], *, by_error: bool
) -> dict[tuple[str | None, tuple[str, ...]], Ends]:
    """Return how many runs fail, by task and path; `by_error`: end in an error."""
    found: dict[tuple[str | None, tuple[str, ...]], Ends] = {}
    for row in rows:
        failed = fails(row, by_error=by_error)
        if row.path is not None and failed is not None:
            key = row.task, row.path.names
            failing, known = found.get(key, NO_ENDS)
            found[key] = Ends(failing + failed, known + 1)
    return found


def _price_table(rows: Sequence[Row]) -> str:
    """Return the version and the date of the price table, on the day of the last run; empty where
    no run has a cost.
    """
    if all(row.cost is None for row in rows):
        return ""
    table = table_date(datetime.fromtimestamp(rows[-1].end_ns / 1e9, UTC).date())
    return "" if table is None else str(table)


def _why_finding(one: WhyFound, why: Why) -> WhyFinding:
    return WhyFinding(
        feature=one.feature.kind,
        names=one.feature.names,
        sentence=clean(of_finding(one, why), MAX_SENTENCE),
        shares=(one.group.value, one.others.value),
        runs=(one.group.runs, one.others.runs),
        p=one.p,
        p_within=one.within_p,
        traces=tuple(dict.fromkeys(map(trace_of, one.runs))),
    )


def _session_readings(sessions: Sequence[SessionScores]) -> dict[str, Reading]:
    """Return the readings of the last 100 sessions, like a running engine."""
    recent = RecentSessions()
    for scores in sessions[-LAST:]:
        recent.add_explained(scores)
    return recent.readings()


def _evaluation(metrics: Mapping[str, ReadingView], profile: str) -> dict[str, Any]:
    names = [name for name, spec in ALL_SPECS.items() if spec.family in EVALUATION_FAMILIES]
    parts = {name: metrics[name].parts for name in names if metrics[name].parts}
    return {"profile": profile, **{name: metrics[name].value for name in names}, "parts": parts}


def _passes(window: AgentWindow, rows: Sequence[Row]) -> Passes:
    if window.one_sided:
        return Passes(pass_hat_k={}, pass_at_k={}, runs=0, tasks=())
    hat = _by_k(window, "pass_hat_k")
    at = _by_k(window, "pass_at_k")
    outcomes = attempts_of(rows)
    return Passes(
        pass_hat_k={str(k): reading.value for k, reading in hat.items()},
        pass_at_k={str(k): reading.value for k, reading in at.items()},
        runs=next((reading.runs for reading in hat.values()), 0),
        tasks=[
            TaskAttempts(task, summary, passed=sum(outcomes[task]))
            for task, summary in sorted(summaries(rows).items(), key=lambda item: item[0] or "")
        ],
    )


def _by_k(window: AgentWindow, name: str) -> Mapping[int, Reading]:
    metric = window.metric(name)
    return metric.by_k() if isinstance(metric, PassAtK | PassHatK) else {}


def _task_outcomes(rows: Iterable[Row]) -> dict[str | None, tuple[int, int]]:
    found: dict[str | None, tuple[int, int]] = {}
    for row in rows:
        passed, known = found.get(row.task, (0, 0))
        found[row.task] = (passed + (row.success is True), known + (row.success is not None))
    return found


# --- Two recordings -------------------------------------------------------------------------------


def _compared_with(
    olds: Iterable[AgentSource], news: Sequence[AgentView], settings: Settings, max_runs: int
) -> Baseline:
    """Compare agents by their keys: service, environment and name."""
    before = {source.key: source for source in olds}
    after = {view.key: view for view in news}
    return Baseline(
        agents=[
            compared(agent_view(before[key], settings, max_runs), view)
            for key, view in after.items()
            if key in before
        ],
        only_before=[key for key in before if key not in after],
        only_after=[key for key in after if key not in before],
    )


def _groups_compared(views: Sequence[AgentView]) -> Baseline | None:
    """Compare the groups of each agent with the one that has its first run; None where every agent
    has one group.
    """
    found = [compared(first, view) for first, *later in groups_of_agents(views) for view in later]
    return Baseline(agents=found, only_before=[], only_after=[]) if found else None


def compared(
    old: AgentView, new: AgentView, sides: tuple[str, str] | None = None
) -> AgentComparison:
    """Compare two groups of runs of one agent. `sides` names them, where their keys do not."""
    found = compare(old.samples, new.samples)
    clear = {
        name: p <= OF_NUMBERS for name, p in p_values_of(_estimates(old), _estimates(new)).items()
    }
    metrics = {
        name: _change(spec, old.metrics[name], new.metrics[name], clear.get(name))
        for name, spec in ALL_SPECS.items()
        if name not in {"tier", "flag"}
        and (old.metrics[name].value is not None or new.metrics[name].value is not None)
    }
    tested_numbers = sum(change.more_than_chance is not None for change in metrics.values())
    return AgentComparison(
        key=new.key,
        groups=_compared_groups(old, new, sides or _sides(old.key, new.key)),
        sentence=clean(of_comparison(found), MAX_SENTENCE),
        differs=found.differs,
        differences=[difference_view(one) for one in found.differences],
        detectable=found.detectable,
        shared_tasks=found.shared_tasks,
        metrics=metrics,
        chance=Chance(OF_NUMBERS, CORRECTION, tested_numbers),
        old=old,
        new=new,
    )


def _sides(old: AgentKey, new: AgentKey) -> tuple[str, str]:
    """Return the values that the groups of an agent are split by; of two recordings, which is
    which.
    """
    if old == new:
        return BEFORE_AND_NOW
    return _group_name(old), _group_name(new)


def _group_name(key: AgentKey) -> str:
    """Return the value that a group is split by; with its kind, where it is a letter."""
    kind, value = key.extra[-1]
    return clean(f"{kind} {value}" if kind in HASHED else value, MAX_SENTENCE)


def _compared_groups(
    old: AgentView, new: AgentView, names: tuple[str, str]
) -> tuple[GroupView, GroupView]:
    before, after = (
        GroupView(name, view.runs, view.start, trace_of(view.first_run))
        for name, view in zip(names, (old, new), strict=True)
    )
    return before, after


def difference_view(one: Difference) -> DifferenceView:
    """Return a difference as every surface shows it."""
    return DifferenceView(
        feature=one.feature.kind,
        names=one.feature.names,
        sentence=clean(of_difference(one), MAX_SENTENCE),
        before=SideView(*one.before),
        after=SideView(*one.after),
        p=one.p,
        run_ids=one.runs,
        trace_ids=tuple(dict.fromkeys(map(trace_of, one.runs))),
    )


def _estimates(view: AgentView) -> dict[str, Estimate]:
    """Return the numbers that have an interval."""
    return {
        name: (one.value, Interval(one.low, one.high, one.method))
        for name, one in view.metrics.items()
        if one.value is not None and one.low is not None and one.high is not None
    }


def _change(
    spec: MetricSpec, before: ReadingView, after: ReadingView, clear: bool | None
) -> ComparedReading:
    if before.value is None or after.value is None:
        return ComparedReading(
            change=None,
            result="gained" if before.value is None else "lost",
            more_than_chance=None,
            before=before,
            after=after,
        )
    difference = after.value - before.value
    if abs(difference) < SAME_BELOW:
        result = "same"
    elif spec.direction == "neutral":
        result = "changed"
    else:
        result = "better" if (difference > 0) == (spec.direction == "higher") else "worse"
    return ComparedReading(
        change=difference, result=result, more_than_chance=clear, before=before, after=after
    )
