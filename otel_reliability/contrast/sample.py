"""Samples: the part of a run that contrasts need, and the latest of each agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from otel_reliability.model.coding import coding_totals
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import Run

MAX_SAMPLES: Final = 2_000
"""Maximum runs of an agent that are contrasted, the latest."""
MAX_STEPS: Final = 1_000
"""Maximum steps of a path that are kept."""
_NONE: Final[frozenset[str]] = frozenset()


class Sample(NamedTuple):
    """The kept part of one run: names of tools and numbers, no argument and no text.

    `block` is what makes runs depend on one another: their task, else their session, else their
    trace. `failed`, `retried` and `repeated` are tools of which a call failed, was a retry, or
    repeated one that had succeeded. `path` None: its tools are unobservable. The numbers of edits
    are None where the run read and changed no file; `tested_edits` is 1 where tests ran after the
    last edit.
    """

    run_id: str
    end_ns: int
    block: tuple[str, str]
    task: str | None
    input_class: str | None
    path: tuple[str, ...] | None
    failed: frozenset[str]
    retried: frozenset[str]
    repeated: frozenset[str]
    calls: int | None
    failed_calls: int | None
    model_calls: int | None
    tokens: int | None
    largest_input: int | None
    duration_s: float
    cost: float | None
    success: bool | None
    ended_in_error: bool | None
    compressed: bool
    fingerprints: tuple[tuple[str, str], ...]
    reads_before_edit: int | None = None
    edits: int | None = None
    failed_edits: int | None = None
    tested_edits: int | None = None


def counts_for_contrast(run: Run) -> bool:
    """Return whether a run is contrasted at all: baseline and complete."""
    return not run.incomplete and run.condition == BASELINE


def sample_of(run: Run) -> Sample:
    """Return what is kept of a run."""
    calls = run.tool_calls
    failed = [call for call in calls or () if not call.ok]
    inputs = [call.input_tokens for call in run.model_calls if call.input_tokens is not None]
    coding = coding_totals(run)
    return Sample(
        run_id=run.run_id,
        end_ns=run.end_ns,
        block=_block(run),
        task=run.task_id,
        input_class=run.input_class,
        path=None if run.path is None else run.path[:MAX_STEPS],
        failed=frozenset([call.name for call in failed]) if failed else _NONE,
        retried=_names(run, "retry"),
        repeated=_names(run, "repeat"),
        calls=None if calls is None else len(calls),
        failed_calls=None if calls is None else len(failed),
        model_calls=len(run.model_calls) or None,
        tokens=run.tokens,
        largest_input=max(inputs, default=None),
        duration_s=run.duration_s,
        cost=run.cost,
        success=run.success,
        ended_in_error=run.ended_in_error,
        compressed=any(one.ok for one in run.compressions),
        fingerprints=run.fingerprints,
        reads_before_edit=coding.reads_before_edit if coding and coding.editing_prompts else None,
        edits=coding.edits if coding else None,
        failed_edits=coding.failed_edits if coding else None,
        tested_edits=coding.tested_prompts if coding and coding.testable_prompts else None,
    )


def _names(run: Run, mark: str) -> frozenset[str]:
    names = [call.name for call in run.tool_calls or () if getattr(call, mark)]
    return frozenset(names) if names else _NONE


def _block(run: Run) -> tuple[str, str]:
    if run.task_id is not None:
        return "task", run.task_id
    if run.session_id is not None:
        return "session", run.session_id
    return "trace", run.trace_id.hex()


class LatestSamples:
    """The samples of an agent's latest runs, in whatever order the runs come."""

    def __init__(self) -> None:
        self._samples: dict[str, Sample] = {}
        self._paths: dict[tuple[str, ...] | None, tuple[str, ...] | None] = {}

    def add(self, run: Run) -> None:
        """Add one final run, if it counts."""
        if not counts_for_contrast(run):
            return
        sample = sample_of(run)
        path = self._paths.setdefault(sample.path, sample.path)
        self._samples[run.run_id] = sample._replace(path=path)
        if len(self._samples) > 2 * MAX_SAMPLES:
            self._samples = {each.run_id: each for each in self.latest()}
            self._paths = {each.path: each.path for each in self._samples.values()}

    def latest(self) -> list[Sample]:
        """Return them in order: by end, then by run id."""
        return latest(self._samples.values())


def latest(samples: Iterable[Sample]) -> list[Sample]:
    """Return the latest samples, as many as are contrasted, by end, then by run id."""
    return sorted(samples, key=lambda one: (one.end_ns, one.run_id))[-MAX_SAMPLES:]


def samples_of(runs: Iterable[Run]) -> list[Sample]:
    """Return the samples of the runs that count."""
    return latest(sample_of(run) for run in runs if counts_for_contrast(run))
