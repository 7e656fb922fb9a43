"""A target of a gate: a dot path to a number, and a bound on it."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from otel_reliability.errors import ConfigurationError, UnknownMetric
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.passes.series import LARGEST_K
from otel_reliability.metrics.passes.summary import TARGETS
from otel_reliability.metrics.stability.tables import TaskRow
from otel_reliability.metrics.stability.tier import TIER_RANKS as TIERS
from otel_reliability.metrics.success.verdict import RANKS as VERDICTS

NOISE: Final = 1e-9
"""Tolerance by which a number may miss its bound by what adding floats costs."""

HOLDS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": lambda value, wanted: value >= wanted - NOISE,
    "<=": lambda value, wanted: value <= wanted + NOISE,
    "==": lambda value, wanted: abs(value - wanted) <= NOISE,
    "!=": lambda value, wanted: abs(value - wanted) > NOISE,
    ">": operator.gt,
    "<": operator.lt,
}
SERIES: Final = ("pass_at_k", "pass_hat_k")
OF_SERIES: Final = tuple(f"{name}.{k}" for name in SERIES for k in range(1, LARGEST_K + 1))
OF_TASKS: Final = (*(field for field in TaskRow._fields if field != "task_id"), *TARGETS)
ALIASES: Final[Mapping[str, str]] = {"pass_rate": "success_rate"}
"""Other names of numbers that are understood."""
_OF_VERDICT: Final = {verdict.value: value for verdict, value in VERDICTS.items()}
WORDS: Final[Mapping[str, Mapping[str, float]]] = {
    "tier": TIERS,
    "verdict": _OF_VERDICT,
    "grade": _OF_VERDICT,
}
"""The numbers that may be bounded by a word, and the value of each word, the worst last."""
EXAMPLE: Final = (
    "'success_rate>=0.9', 'score>=80', 'reliability.passhat_k>=90' or "
    "'agents[\"support\"].path_entropy<=0.3'"
)

_NAME: Final = r"""("(?:[^"\\]|\\.)*"|'[^']*')"""
_TARGET: Final = re.compile(
    rf"""\s*(?:agents\[{_NAME}\]\.)?(?:tasks\[{_NAME}\]\.)?([A-Za-z_][\w.]*)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*"""
)


class GateTarget(NamedTuple):
    """`text` as it was written: a bound on the number `name` of one agent (None: of every agent
    that has it), and of one task (None: of the agent, or of every task where the number is a
    task's).
    """

    text: str
    agent: str | None
    task: str | None
    name: str
    sign: str
    wanted: float

    def holds(self, value: float) -> bool:
        return HOLDS[self.sign](value, self.wanted)


def parse(text: str) -> GateTarget:
    """Read a target. Raises `ConfigurationError` for what is none, `UnknownMetric` for a path that
    names no metric.

    >>> parse('agents["support"].score >= 80')[1:]
    ('support', None, 'score', '>=', 80.0)
    >>> parse("pass_hat_k.4>=0.5").name, parse("tier>=STABLE").wanted
    ('pass_hat_k.4', 3.0)
    >>> parse("pass_rate>=0.9").name, parse("verdict>=variable").wanted
    ('success_rate', 3.0)
    >>> parse("scor>=80")
    Traceback (most recent call last):
    otel_reliability.errors.UnknownMetric: 'scor' names no metric. Did you mean score?
    """
    found = _TARGET.fullmatch(text)
    if found is None:
        raise ConfigurationError("--require", text, "a target", f"write it like {EXAMPLE}")
    agent, task, name, sign, wanted = found.groups()
    name = ALIASES.get(name, name)
    known = OF_TASKS if task else (*ALL_SPECS, *OF_SERIES, *TARGETS)
    if name not in known:
        raise UnknownMetric(name, known)
    return GateTarget(
        text.strip(), _unquoted(agent), _unquoted(task), name, sign, _bound(text, name, wanted)
    )


def _unquoted(name: str | None) -> str | None:
    if name is None:
        return None
    return name[1:-1] if name.startswith("'") else str(json.loads(name))


def _bound(text: str, name: str, wanted: str) -> float:
    known = WORDS.get(name, {})
    for word, value in known.items():
        if word.casefold() == wanted.casefold():
            return value
    try:
        return float(wanted)
    except ValueError:
        best_first = sorted(known, key=known.__getitem__, reverse=True)
        words = f" or one of {', '.join(best_first)}" if best_first else ""
        raise ConfigurationError(
            "--require", text, f"a bound: {wanted!r} is no number{words}", f"write {EXAMPLE}"
        ) from None
