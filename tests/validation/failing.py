"""What failing runs have in common, on recordings: how much is found, how much of it comes again in
tasks it was not found in, and how often something is found where outcomes are shuffled.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from otel_reliability.contrast.features import OUTCOMES, design
from otel_reliability.contrast.sample import Sample, samples_of
from otel_reliability.contrast.why import why_runs_fail
from otel_reliability.statistics.contrast import contrast
from otel_reliability.statistics.significance import SIGNIFICANCE_LEVEL
from tests.corpora.recordings import rebuilt, recording

Shuffle: TypeAlias = Callable[[Sequence[Sample], random.Random], list[Sample]]

RECORDINGS: Final = {
    "gpt-4o, tau-bench airline": "taubench/gpt-4o_airline_4trials.otlp.jsonl.gz",
    "SWE-agent with gpt-4": "swe/sweagent_gpt4_lite_3trials.otlp.jsonl.gz",
    "claude-sonnet-4-5, tau2 airline": "tau2/claude-sonnet-4-5_airline.otlp.jsonl.gz",
    "gpt-4.1, tau2 airline": "tau2/gpt-4.1_airline.otlp.jsonl.gz",
    "gpt-4.1, tau2 telecom": "tau2/gpt-4.1_telecom.otlp.jsonl.gz",
    "gpt-4.1-sft, tau2 airline": "tau2/gpt-4.1-sft_airline.otlp.jsonl.gz",
    "gpt-4.1-sft, tau2 telecom": "tau2/gpt-4.1-sft_telecom.otlp.jsonl.gz",
}
SHUFFLES: Final = 100
HALVES: Final = 10
LEAST_DIFFERENCE: Final = 0.05
"""Difference of two shares from which a finding of one half of the tasks comes again in the other.
"""


class Found(NamedTuple):
    """One recording. `again` of `tested` findings of one half of the tasks come again in the other;
    `false_tasks` and `false_runs` are shares of shuffles with any finding, with tasks and without.
    """

    runs: int
    failing: int
    features: int
    findings: int
    again: int
    tested: int
    false_tasks: float
    false_runs: float


def table() -> Iterator[str]:
    """Yield the lines of a table, one row a recording."""
    yield "| recording | runs | fail | features | found | come again | shuffled by task | by run |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for name, path in RECORDINGS.items():
        one = measured(samples_of(rebuilt(recording(path).spans).runs))
        yield (
            f"| {name} | {one.runs} | {one.failing} | {one.features} | {one.findings} | "
            f"{one.again} of {one.tested} | {one.false_tasks:.3f} | {one.false_runs:.3f} |"
        )


def measured(samples: Sequence[Sample], shuffles: int = SHUFFLES, halves: int = HALVES) -> Found:
    """Return what is found in the samples of a recording, and what of it holds."""
    known = [sample for sample in samples if sample.success is not None]
    why = why_runs_fail(known)
    rng = random.Random(0)
    again = tested = 0
    for _ in range(halves):
        right, of = _come_again(known, rng)
        again += right
        tested += of
    return Found(
        runs=why.runs,
        failing=why.failing,
        features=why.features,
        findings=len(_significant(known)),
        again=again,
        tested=tested,
        false_tasks=_share_found(known, rng, shuffles, shuffled_by_task),
        false_runs=_share_found(known, rng, shuffles, shuffled_by_run),
    )


def _share_found(
    samples: Sequence[Sample], rng: random.Random, shuffles: int, shuffled: Shuffle
) -> float:
    found = [bool(why_runs_fail(shuffled(samples, rng)).findings) for _ in range(shuffles)]
    return sum(found) / shuffles


def _significant(samples: Sequence[Sample]) -> dict[object, float]:
    """Return the features that go with failing, each with the difference of its shares."""
    found = design(samples, without=frozenset(OUTCOMES))
    failing = [not sample.success for sample in samples]
    result = contrast(
        found.columns, failing, [sample.block for sample in samples], level=SIGNIFICANCE_LEVEL
    )
    differences = _differences(samples)
    return {
        feature: differences[feature]
        for feature, p in zip(found.features, result.p, strict=True)
        if p <= SIGNIFICANCE_LEVEL
    }


def _differences(samples: Sequence[Sample]) -> dict[object, float]:
    """Return the difference that each feature makes to failing: of the means of its column among
    runs that fail and others, by their spread.
    """
    found = design(samples, without=frozenset(OUTCOMES))
    failing = np.array([not sample.success for sample in samples])
    columns = np.asarray(found.columns, dtype=np.float64)
    spread = columns.std(axis=0)
    difference = columns[failing].mean(axis=0) - columns[~failing].mean(axis=0)
    return {
        feature: float(difference[at] / spread[at]) if spread[at] else 0.0
        for at, feature in enumerate(found.features)
    }


def _come_again(samples: Sequence[Sample], rng: random.Random) -> tuple[int, int]:
    """Split the tasks in halves; return how many findings of one point the same way in the other,
    of those that it has.
    """
    tasks = sorted({str(sample.task) for sample in samples})
    rng.shuffle(tasks)
    first = set(tasks[::2])
    here = [sample for sample in samples if str(sample.task) in first]
    there = [sample for sample in samples if str(sample.task) not in first]
    other = _differences(there)
    found = {feature: size for feature, size in _significant(here).items() if feature in other}
    right = sum(
        size * other[feature] > 0 and abs(other[feature]) > LEAST_DIFFERENCE
        for feature, size in found.items()
    )
    return right, len(found)


def shuffled_by_task(samples: Sequence[Sample], rng: random.Random) -> list[Sample]:
    """Return the runs with the outcomes of whole tasks in another order, among tasks with equally
    many runs, and within each task.
    """
    tasks: defaultdict[str | None, list[Sample]] = defaultdict(list)
    for sample in samples:
        tasks[sample.task].append(sample)
    sizes: defaultdict[int, list[list[Sample]]] = defaultdict(list)
    for runs in tasks.values():
        sizes[len(runs)].append(runs)
    made: list[Sample] = []
    for groups in sizes.values():
        outcomes = [rng.sample([one.success for one in runs], len(runs)) for runs in groups]
        rng.shuffle(outcomes)
        for runs, given in zip(groups, outcomes, strict=True):
            made += [
                one._replace(success=success) for one, success in zip(runs, given, strict=True)
            ]
    return made


def shuffled_by_run(samples: Sequence[Sample], rng: random.Random) -> list[Sample]:
    """Return the runs with their outcomes in another order; each a task of its own."""
    outcomes = rng.sample([one.success for one in samples], len(samples))
    return [
        one._replace(success=success, task=None, block=("trace", one.run_id))
        for one, success in zip(samples, outcomes, strict=True)
    ]
