"""Attribute keys that are nearly ours: `otel_reliability.task.id` is not read, and the runs that it
is on have no task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from otel_reliability.conventions import notes
from otel_reliability.sources.batch import OUTCOME_ATTRIBUTES

KEYS: Final = frozenset(
    {
        notes.TASK_ID,
        notes.TRIAL,
        notes.SUCCESS,
        notes.REWARD,
        notes.CONFIDENCE,
        notes.COST,
        notes.CONDITION,
        notes.VIOLATIONS,
        notes.INPUT_CLASS,
        notes.CONTEXT_LIMIT,
        notes.USAGE_COST,
        *(key for key in OUTCOME_ATTRIBUTES.values() if key.startswith(notes.PREFIX)),
    }
)
"""The keys that are read, but for those of branches, which users name."""
OWN_PREFIXES: Final = (
    notes.BRANCH_PREFIX,
    "reliability.experiment.",
    "reliability.attempt.",
)
"""Beginnings of keys that are read as they are, or that an experiment writes for people."""
MAX_KEYS: Final = 1_000
"""Keys with our word in them that are compared."""
MIN_LIKENESS: Final = 0.75
"""Likeness of what follows the prefix from which a key is one of ours, misspelt."""
_WORD: Final = "reliability"
_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")


class NearKey(NamedTuple):
    """A key that is not read, the one that is meant, and the number of spans and log events."""

    found: str
    meant: str
    times: int


class NearKeys:
    """Counts the keys that are nearly ours; each key is compared once."""

    def __init__(self) -> None:
        self._meant: dict[str, str | None] = {}
        self._times: Counter[str] = Counter()

    def see(self, *attributes: Mapping[str, Any]) -> None:
        """Count the keys of one span or log event, and of its resource."""
        for key in {key for each in attributes for key in each if self._is_near(key)}:
            self._times[key] += 1

    def found(self) -> list[NearKey]:
        """Return what was counted, the most frequent first."""
        ranked = sorted(self._times.items(), key=lambda item: (-item[1], item[0]))
        return [NearKey(key, self._meant[key] or "", times) for key, times in ranked]

    def _is_near(self, key: str) -> bool:
        if _WORD not in key.lower():
            return False
        if key not in self._meant:
            if len(self._meant) >= MAX_KEYS:
                return False
            self._meant[key] = meant_by(key)
        return self._meant[key] is not None


def meant_by(key: str) -> str | None:
    """Return which of our keys is meant by one that is nearly it; None for our own, and for those
    that are none of ours.

    >>> [meant_by(f"{prefix}reliability.task.id") for prefix in ("otel_", "agent.", "")]
    ['reliability.task.id', 'reliability.task.id', None]
    >>> meant_by("reliability.taskid"), meant_by("Reliability.Run_Success"), meant_by("task.id")
    ('reliability.task.id', 'reliability.run.success', None)
    >>> meant_by("reliability.sucess"), meant_by("agent.reliability.score")
    ('reliability.run.success', None)
    """
    if key in KEYS or key.startswith(OWN_PREFIXES):
        return None
    _, word, rest = _spelled(key).rpartition(_WORD)
    if not word:
        return None
    near = get_close_matches(rest, _BY_REST, n=1, cutoff=MIN_LIKENESS)
    return _BY_REST[near[0]] if near else None


def _spelled(key: str) -> str:
    return _SEPARATORS.sub("", key.lower())


def _rests(keys: Iterable[str]) -> dict[str, str]:
    return {_spelled(key).removeprefix(_WORD): key for key in keys}


_BY_REST: Final[Mapping[str, str]] = _rests(sorted(KEYS))
