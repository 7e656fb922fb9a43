"""Why runs fail: what failing runs have in common that others have not.

An association is no cause: hard tasks need other tools. So each finding also has its p-value within
tasks (else input groups), where only attempts at one task are compared with one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from otel_reliability.contrast.compare import (
    MIN_RUNS,
    Flags,
    Side,
    examples,
    side,
    strongest,
)
from otel_reliability.contrast.features import KINDS, OUTCOMES, Design, Feature, design
from otel_reliability.contrast.sample import Sample, latest
from otel_reliability.statistics.contrast import Contrast, Detectable, contrast
from otel_reliability.statistics.significance import SIGNIFICANCE_LEVEL

MAX_FINDINGS: Final = 5


class Finding(NamedTuple):
    """One feature that goes with failing.

    Of a kind of `KINDS`, `having` are the runs that have it and `others` those that have it not,
    each with the number and the share of them that fail. Of a number, they are the runs that fail
    and the others, with its mean. `p` is family-wise, `within_p` the same within tasks or groups
    (None: there are none with runs that fail and runs that do not). `runs` are failing runs that
    show it (or, where it goes with success, runs that succeed), by run id.
    """

    feature: Feature
    z: float
    p: float
    within_p: float | None
    having: Side
    others: Side
    runs: tuple[str, ...]


class Why(NamedTuple):
    """Features that failing runs have in common, the strongest first, at most five findings.

    `by_error`: outcomes are unknown, so runs that ended in an error are contrasted with the others.
    `strata` is what `within_p` is within: `tasks`, `input groups`, or empty. `why` is the reason
    why nothing was contrasted.
    """

    runs: int
    failing: int
    by_error: bool
    strata: str = ""
    features: int = 0
    findings: tuple[Finding, ...] = ()
    detectable: Detectable | None = None
    why: str = ""


def why_runs_fail(samples: Sequence[Sample]) -> Why:
    """Return what failing runs have in common, with any false finding in at most 5 % of cases."""
    by_error, known = _labelled(latest(samples))
    failing = np.array([fails for _, fails in known], dtype=np.bool_)
    runs = [sample for sample, _ in known]
    counts = Why(len(runs), int(failing.sum()), by_error)
    if min(counts.failing, counts.runs - counts.failing) < MIN_RUNS:
        return counts._replace(why=f"it needs {MIN_RUNS} runs that fail and {MIN_RUNS} that do not")
    found = design(runs, without=frozenset(OUTCOMES))
    labels: list[bool] = failing.tolist()
    result = contrast(found.columns, labels, [run.block for run in runs], level=SIGNIFICANCE_LEVEL)
    chosen = [at for at, p in enumerate(result.p) if p <= SIGNIFICANCE_LEVEL]
    best = strongest(
        found, result.z, chosen, may_drop=frozenset(each.kind for each in found.features)
    )
    strata, within = _within(runs, found, labels) if best else ("", None)
    return counts._replace(
        strata=strata,
        features=len(found.features),
        findings=tuple(
            _finding(runs, failing, found, at, result, within) for at in best[:MAX_FINDINGS]
        ),
        detectable=result.detectable,
    )


def _labelled(samples: Sequence[Sample]) -> tuple[bool, list[tuple[Sample, bool]]]:
    """Return whether runs are distinguished by errors, as too few outcomes are known; and the runs
    of which that is known, each with whether it fails.
    """
    outcomes = [(one, not one.success) for one in samples if one.success is not None]
    failing = sum(fails for _, fails in outcomes)
    if min(failing, len(outcomes) - failing) >= MIN_RUNS:
        return False, outcomes
    errors = [(one, one.ended_in_error) for one in samples if one.ended_in_error is not None]
    failing = sum(fails for _, fails in errors)
    if min(failing, len(errors) - failing) >= MIN_RUNS or not outcomes:
        return True, errors
    return False, outcomes


def _finding(
    runs: Sequence[Sample],
    failing: Flags,
    found: Design,
    at: int,
    result: Contrast,
    within: Contrast | None,
) -> Finding:
    feature = found.features[at]
    column = found.columns[:, at]
    fails_more = result.z[at] > 0
    if feature.kind in KINDS:
        having = _share(failing, column == 1)
        others = _share(failing, column == 0)
    else:
        having = side(found, at, failing)
        others = side(found, at, ~failing)
    return Finding(
        feature=feature,
        z=result.z[at],
        p=result.p[at],
        within_p=None if within is None else within.p[at],
        having=having,
        others=others,
        runs=examples(runs, column, failing == fails_more),
    )


def _share(failing: Flags, chosen: Flags) -> Side:
    runs = int(chosen.sum())
    fails = int((failing & chosen).sum())
    return Side(runs, fails, fails / runs if runs else None)


def _within(
    runs: Sequence[Sample], found: Design, failing: Sequence[bool]
) -> tuple[str, Contrast | None]:
    """Return what runs are compared within, and the contrast within it."""
    for strata, values in (
        ("tasks", [run.task for run in runs]),
        ("input groups", [run.input_class for run in runs]),
    ):
        known = [value for value in values if value is not None]
        if len(known) < len(values) or len(set(known)) in {1, len(known)}:
            continue
        both = {value for value, fails in zip(known, failing, strict=True) if fails} & {
            value for value, fails in zip(known, failing, strict=True) if not fails
        }
        if both:
            return strata, contrast(
                found.columns, failing, known, level=SIGNIFICANCE_LEVEL, within=True
            )
    return "", None
