"""An observation: the numbers of one run, or of a whole session, that change detection compares.

The turns of one conversation depend on one another, so they cannot be observations of their own: a
bet on the next turn would win without any change. Where an agent's runs carry session ids, the
session is the observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct

from otel_reliability.model.cached_input import cached_input
from otel_reliability.model.coding import CodingTotals, coding_totals
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.sums import complete_sum

Steps: TypeAlias = tuple[str, ...]

MAX_STEPS: Final = 1_000
"""Maximum steps of a path that are kept, so that the 40 reference paths stay small."""

_FAILURES: Final = {Outcome.SUCCESS: 0, Outcome.FAILURE: 1}


class Observation(Struct, frozen=True, gc=False, array_like=True):
    """The numbers of one observation. None: the telemetry has no data, which is not 0.

    `failures` is the number of failed runs among those whose outcome is known, `errors` that of
    runs that ended in an error among those whose end was observed. `largest_input` is the greatest
    input of one model call, in tokens: it shows a growing context where the sum over calls would
    not. `replies` is the number of model calls with known output tokens, `reply_tokens` the sum of
    these. `fingerprints` are those of `Run`. `tokens` are input and output, `prompts` the number of
    runs, `cancelled` that of cancelled ones; `coding` what they did to files.
    `cached_tokens` and `input_tokens` are those of `CachedInput`. `request` is the
    sketch of that of the run, of a session that of its first one.
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
    fingerprints: tuple[tuple[str, str], ...] = ()
    errors: int | None = None
    tokens: int | None = None
    prompts: int = 1
    cancelled: int = 0
    coding: CodingTotals | None = None
    request: bytes | None = None
    cached_tokens: int = 0
    input_tokens: int = 0


def counts_for_change(run: Run) -> bool:
    """Return whether a run is observed at all: top-level, baseline and complete."""
    return not run.nested and not run.incomplete and run.condition == BASELINE


def observation_of(run: Run) -> Observation:
    """Return the numbers of one run."""
    calls = run.tool_calls
    path = run.path
    replies = [call.output_tokens for call in run.model_calls if call.output_tokens is not None]
    cached = cached_input(run)
    inputs = [call.input_tokens for call in run.model_calls if call.input_tokens is not None]
    return Observation(
        id=run.run_id,
        start_ns=run.start_ns,
        end_ns=run.end_ns,
        path=None if path is None else path[:MAX_STEPS],
        calls=None if calls is None else len(calls),
        failed_calls=None if calls is None else sum([not call.ok for call in calls]),
        output_tokens=run.output_tokens,
        largest_input=max(inputs, default=None),
        failures=_FAILURES.get(run.outcome),
        reply_tokens=sum(replies),
        replies=len(replies),
        task=run.task_id,
        fingerprints=run.fingerprints,
        errors=None if run.ended_in_error is None else int(run.ended_in_error),
        tokens=run.tokens,
        cancelled=int(run.outcome is Outcome.CANCELLED),
        coding=coding_totals(run),
        request=run.request,
        cached_tokens=cached.cached,
        input_tokens=cached.given,
    )


def joined(session_id: str, runs: Sequence[Observation]) -> Observation:
    """Return the observation of a session: its runs' numbers summed, their paths joined, in the
    order of their ends.

    A number that one of the runs lacks is absent: a sum of some of the turns would look like a
    change. Outcomes and errors are summed over the runs of which they are known.
    """
    ordered = in_order(runs)
    tasks = {run.task for run in ordered}
    failures = [run.failures for run in ordered if run.failures is not None]
    errors = [run.errors for run in ordered if run.errors is not None]
    return Observation(
        id=session_id,
        start_ns=min(run.start_ns for run in ordered),
        end_ns=ordered[-1].end_ns,
        path=_joined_path(ordered),
        calls=complete_sum(run.calls for run in ordered),
        failed_calls=complete_sum(run.failed_calls for run in ordered),
        output_tokens=complete_sum(run.output_tokens for run in ordered),
        largest_input=max(
            (run.largest_input for run in ordered if run.largest_input is not None), default=None
        ),
        failures=sum(failures) if failures else None,
        errors=sum(errors) if errors else None,
        reply_tokens=sum(run.reply_tokens for run in ordered),
        replies=sum(run.replies for run in ordered),
        task=tasks.pop() if len(tasks) == 1 else None,
        fingerprints=tuple(sorted({pair for run in ordered for pair in run.fingerprints})),
        tokens=complete_sum(run.tokens for run in ordered),
        prompts=sum(run.prompts for run in ordered),
        cancelled=sum(run.cancelled for run in ordered),
        coding=CodingTotals.joined(run.coding for run in ordered),
        request=ordered[0].request,
        cached_tokens=sum(run.cached_tokens for run in ordered),
        input_tokens=sum(run.input_tokens for run in ordered),
    )


def in_order(observations: Iterable[Observation]) -> list[Observation]:
    """Return observations in the order in which a file enters them: by end, then by id."""
    return sorted(observations, key=lambda one: (one.end_ns, one.id))


def _joined_path(runs: Sequence[Observation]) -> Steps | None:
    paths = [run.path for run in runs if run.path is not None]
    return tuple(chain.from_iterable(paths))[:MAX_STEPS] if len(paths) == len(runs) else None
