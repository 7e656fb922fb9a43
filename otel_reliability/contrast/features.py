"""Features: what a run can have or not, and its numbers, and the matrix of them.

To add a kind of feature: a row in `KINDS` and what yields it in `_features`; to add a number: a row
in `NUMBERS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from otel_reliability.contrast.sample import Sample
from otel_reliability.statistics.permutation import Floats

MIN_SUPPORT: Final = 5
"""Runs that must have a feature, and that must not have it, up to 100 runs: fewer can show nothing.
"""
MAX_SUPPORT: Final = 10
"""Runs that must have it, and that must not, from 200 runs on; between, one in twenty."""
MANY: Final = 3
"""Calls of one tool from which a run calls it repeatedly."""
MAX_FEATURES: Final = 300
"""Maximum features that are contrasted; beyond, those that part the runs most evenly."""


class FeatureKind(NamedTuple):
    """A kind of feature. `share` is a clause that a share of runs completes, `runs` names the runs
    that have the feature; `{0}` and `{1}` stand for what it names.
    """

    share: str
    runs: str


KINDS: Final[Mapping[str, FeatureKind]] = {
    "retries": FeatureKind("{0} is retried in", "runs that retry {0}"),
    "fails": FeatureKind("a call of {0} fails in", "runs in which a call of {0} fails"),
    "repeats": FeatureKind(
        "{0} repeats a call that succeeded in", "runs that repeat a call of {0}"
    ),
    "uses": FeatureKind("{0} is used in", "runs that call {0}"),
    "many": FeatureKind(
        f"{{0}} is called {MANY} times or more in", f"runs that call {{0}} {MANY} times or more"
    ),
    "ends": FeatureKind("{0} is the last step in", "runs that end with {0}"),
    "begins": FeatureKind("{0} is the first step in", "runs that begin with {0}"),
    "then": FeatureKind("{1} directly follows {0} in", "runs that call {1} directly after {0}"),
    "path": FeatureKind("the path is {0} in", "runs that take the path {0}"),
    "calls_nothing": FeatureKind("no tool is called in", "runs that call no tool"),
    "compressed": FeatureKind("the context is compressed in", "runs that compress the context"),
    "success": FeatureKind("success in", "runs that succeed"),
    "ended_in_error": FeatureKind("an error at the end of", "runs that end in an error"),
    "input": FeatureKind("the input is of group {0} in", "runs with inputs of group {0}"),
    "model": FeatureKind("the model is {0} in", "runs with model {0}"),
    "reasoning": FeatureKind("the level of reasoning is {0} in", "runs with reasoning {0}"),
    "version": FeatureKind("the version is {0} in", "runs of version {0}"),
    "prompt": FeatureKind("the system prompt is {0} in", "runs with system prompt {0}"),
    "tools": FeatureKind("the tool definitions are {0} in", "runs with tool definitions {0}"),
    "framework": FeatureKind("the instrumentation is {0} in", "runs with instrumentation {0}"),
}
"""Every kind of feature. Of features that say the same of these runs, the kind that stands first is
shown.
"""


class Number(NamedTuple):
    """A number of a run, its words and its unit."""

    words: str
    unit: str


NUMBERS: Final[Mapping[str, Number]] = {
    "calls": Number("tool calls", "{call}"),
    "failed_calls": Number("failed tool calls", "{call}"),
    "model_calls": Number("model calls", "{call}"),
    "tokens": Number("tokens", "{token}"),
    "largest_input": Number("largest input of a model call", "{token}"),
    "duration_s": Number("duration", "s"),
    "cost": Number("cost", "USD"),
    "reads_before_edit": Number("reads before the first edit", "{call}"),
    "edits": Number("edits", "{call}"),
    "failed_edits": Number("failed edits", "{call}"),
    "tested_edits": Number("edits that were tested", "{ratio}"),
}
"""Every number that is contrasted, by the name of its field in `Sample`."""

OUTCOMES: Final = ("success", "ended_in_error")
"""In the order in which they are reported."""
ORIGINS: Final = frozenset(
    {"input", "model", "reasoning", "version", "prompt", "tools", "framework"}
)
"""Kinds that a run is given, unlike what it does."""


class Feature(NamedTuple):
    """A kind of `KINDS` and the tools or values that it is about; or a name of `NUMBERS`."""

    kind: str
    names: tuple[str, ...] = ()


class Design(NamedTuple):
    """The features of some runs: a column each, a row a run; NaN where not known."""

    features: Sequence[Feature]
    columns: Floats


def design(samples: Sequence[Sample], without: frozenset[str] = frozenset()) -> Design:
    """Return the features that enough runs have, and enough do not; and the numbers that are known
    and not all equal. Kinds and numbers `without` are left out.
    """
    support = min(MAX_SUPPORT, max(MIN_SUPPORT, len(samples) // 20))
    rows_of: dict[Feature, list[int]] = {}
    for at, sample in enumerate(samples):
        for feature in set(_features(sample)):
            if feature.kind not in without:
                rows_of.setdefault(feature, []).append(at)
    known = {"success": np.array([one.success is not None for one in samples])}
    known["ended_in_error"] = np.array([one.ended_in_error is not None for one in samples])
    of_steps = np.array([one.path is not None for one in samples])
    everywhere = np.ones(len(samples), dtype=np.bool_)
    found: dict[Feature, Floats] = {}
    for feature, rows in sorted(rows_of.items()):
        is_known = (
            everywhere
            if feature.kind in ORIGINS or feature.kind == "compressed"
            else known.get(feature.kind, of_steps)
        )
        if support <= len(rows) <= np.count_nonzero(is_known) - support:
            column = np.where(is_known, 0.0, np.nan)
            column[rows] = 1.0
            found[feature] = column
    if len(found) > MAX_FEATURES:
        evenly = sorted(found, key=lambda one: (abs(float(np.nanmean(found[one])) - 0.5), one))
        found = {feature: found[feature] for feature in evenly[:MAX_FEATURES]}
    for name in NUMBERS:
        column = _numbers(samples, name)
        values = column[~np.isnan(column)]
        if name not in without and len(values) >= 2 * MIN_SUPPORT and np.ptp(values):
            found[Feature(name)] = column
    columns = np.stack(list(found.values()), axis=1) if found else np.empty((len(samples), 0))
    return Design(list(found), columns)


def _numbers(samples: Sequence[Sample], name: str) -> Floats:
    values: list[Any] = list(map(attrgetter(name), samples))
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _features(sample: Sample) -> Iterator[Feature]:
    if sample.success:
        yield Feature("success")
    if sample.ended_in_error:
        yield Feature("ended_in_error")
    if sample.compressed:
        yield Feature("compressed")
    if sample.input_class is not None:
        yield Feature("input", (sample.input_class,))
    for kind, value in sample.fingerprints:
        yield Feature(kind, (value,))
    if sample.path is not None:
        yield from _of_steps(sample, sample.path)


def _of_steps(sample: Sample, path: tuple[str, ...]) -> Iterator[Feature]:
    for tool, calls in Counter(path).items():
        yield Feature("uses", (tool,))
        if calls >= MANY:
            yield Feature("many", (tool,))
    for kind, tools in (
        ("fails", sample.failed),
        ("retries", sample.retried),
        ("repeats", sample.repeated),
    ):
        for tool in tools:
            yield Feature(kind, (tool,))
    for step, following in pairwise(path):
        yield Feature("then", (step, following))
    if path:
        yield Feature("begins", (path[0],))
        yield Feature("ends", (path[-1],))
        yield Feature("path", path)
    else:
        yield Feature("calls_nothing")
