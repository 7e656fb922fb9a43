"""Why runs fail, or stand out in another way: what they have in common that others have not.

An association is no cause: hard tasks need other tools. So each finding also has its p-value within
tasks (else input groups), where only attempts at one task are compared with one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
TOP_SHARE: Final = 0.2
"""Share of the runs that stand out by a number."""
MAX_TOP_SHARE: Final = 1 / 3
"""Share of the runs, at most, that stand out with those of equal number."""
MAX_TOP_RUNS: Final = 500
"""Maximum runs, the latest, among which some stand out by a number."""


class Question(NamedTuple):
    """Distinction of the runs that are contrasted from the others. In sentences, `do` is what the
    runs do, `runs` names them, `did` what so many did. `without`: kinds and numbers that say the
    same themselves.
    """

    name: str
    do: str
    runs: str
    did: str
    without: frozenset[str]


FAILING: Final = Question("failing", "fail", "runs that fail", "failed", frozenset(OUTCOMES))
ERRING: Final = Question(
    "erring",
    "end in an error",
    "runs that end in an error",
    "ended in an error",
    frozenset(OUTCOMES),
)
SLOW: Final = Question(
    "slow",
    "are among the slowest",
    "the slowest runs",
    "are the slowest",
    frozenset({"duration_s"}),
)
COSTLY: Final = Question(
    "costly",
    "are among the most expensive",
    "the most expensive runs",
    "are the most expensive",
    frozenset({"cost", "tokens"}),
)
UNLIKE: Final = Question(
    "unlike",
    "are among those least like the others",
    "the runs least like the others",
    "are least like the others",
    frozenset({"path"}),
)


class Finding(NamedTuple):
    """One feature that goes with failing.

    Of a kind of `KINDS`, `group` are the runs that have it and `others` those that have it not,
    each with the number and the share of them that fail. Of a number, they are the runs that fail
    and the others, with its mean. `p` is family-wise, `within_p` the same within tasks or groups
    (None: there are none with runs that fail and runs that do not). `runs` are failing runs that
    show it (or, where it goes with success, runs that succeed), by run id.
    """

    feature: Feature
    z: float
    p: float
    within_p: float | None
    group: Side
    others: Side
    runs: tuple[str, ...]


class Why(NamedTuple):
    """Features that failing runs have in common, the strongest first, at most five findings.

    `question`: what distinguishes them; of failing runs `ERRING` where outcomes are unknown.
    `strata` is what `within_p` is within: `tasks`, `input groups`, or empty. `why` is the reason
    why nothing was contrasted.
    """

    runs: int
    failing: int
    question: Question
    strata: str = ""
    features: int = 0
    findings: tuple[Finding, ...] = ()
    detectable: Detectable | None = None
    why: str = ""


def why_runs_fail(samples: Sequence[Sample]) -> Why:
    """Return what failing runs have in common, with any false finding in at most 5 % of cases."""
    by_error, known = _labelled(latest(samples))
    return _contrasted(ERRING if by_error else FAILING, known)


def why_runs_stand_out(samples: Sequence[Sample], distances: Mapping[str, float]) -> list[Why]:
    """Return what the slowest, the most expensive and the most unlike of the latest 500 runs have
    in common, each with any false finding in at most 5 % of cases.

    These are the fifth with the greatest duration; cost, or tokens where the cost of a run is not
    known; and distance of its path from those of its group (`distances`, by run id).
    """
    runs = latest(samples)[-MAX_TOP_RUNS:]
    costs = [run.cost for run in runs]
    if None in costs:
        costs = [run.tokens for run in runs]
    numbers = {
        SLOW: [run.duration_s for run in runs],
        COSTLY: costs,
        UNLIKE: [distances.get(run.run_id) for run in runs],
    }
    return [_contrasted(question, _top(runs, values)) for question, values in numbers.items()]


def _top(runs: Sequence[Sample], values: Sequence[float | None]) -> list[tuple[Sample, bool]]:
    """Return the runs whose number is known, each with whether it is one of the greatest fifth.
    Those of equal number are all of it, up to a third of the runs, or none.
    """
    known = [(run, value) for run, value in zip(runs, values, strict=True) if value is not None]
    if not known:
        return []
    ordered = sorted(value for _, value in known)
    bound = ordered[min(len(ordered) - 1, int((1 - TOP_SHARE) * len(ordered)))]
    if sum(value >= bound for value in ordered) > MAX_TOP_SHARE * len(ordered):
        return [(run, value > bound) for run, value in known]
    return [(run, value >= bound) for run, value in known]


def _contrasted(question: Question, known: Sequence[tuple[Sample, bool]]) -> Why:
    failing = np.array([fails for _, fails in known], dtype=np.bool_)
    runs = [sample for sample, _ in known]
    unanswered = Why(len(runs), int(failing.sum()), question)
    if min(unanswered.failing, unanswered.runs - unanswered.failing) < MIN_RUNS:
        those = (
            "that fail and {0} that do not" if question in {FAILING, ERRING} else "and {0} others"
        )
        return unanswered._replace(why=f"it needs {MIN_RUNS} runs {those.format(MIN_RUNS)}")
    found = design(runs, without=question.without)
    labels: list[bool] = failing.tolist()
    result = contrast(found.columns, labels, [run.block for run in runs], level=SIGNIFICANCE_LEVEL)
    chosen = [at for at, p in enumerate(result.p) if p <= SIGNIFICANCE_LEVEL]
    best = strongest(
        found, result.z, chosen, may_drop=frozenset(each.kind for each in found.features)
    )
    strata, within = _within(runs, found, labels) if best else ("", None)
    return unanswered._replace(
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
        group = _share(failing, column == 1)
        others = _share(failing, column == 0)
    else:
        group = side(found, at, failing)
        others = side(found, at, ~failing)
    return Finding(
        feature=feature,
        z=result.z[at],
        p=result.p[at],
        within_p=None if within is None else within.p[at],
        group=group,
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
