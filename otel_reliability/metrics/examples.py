"""Rows by hand: for the examples in this package, for tests, and for authors of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from otel_reliability.model.row import BASELINE, Path, Retries, Row
from otel_reliability.model.run import Outcome

_CODES: Final[dict[str, str]] = {}
_NAMES: Final[dict[str, str]] = {}
_PATHS: Final[dict[str, Path]] = {}
_ORDINALS: Final = count()


def path_of(names: str | Sequence[str]) -> Path:
    """A path from its steps, or from one string of them with spaces between.

    >>> path_of("search read search").counts
    (('read', 1), ('search', 2))
    """
    steps = tuple(names.split()) if isinstance(names, str) else tuple(names)
    for step in steps:
        _NAMES.setdefault(_CODES.setdefault(step, chr(0x21 + len(_CODES))), step)
    code = "".join([_CODES[step] for step in steps])
    return _PATHS.setdefault(code, Path(code, _NAMES))


def row(
    path: str | Sequence[str] | None = (),
    *,
    retries: int = 0,
    repeats: int = 0,
    branches: Mapping[str, str] | None = None,
    **fields: Any,
) -> Row:
    """A row of a run that took this path (None: it has none); by name, any other field of a row.

    `retries` is the length of its one retry chain. Without an `end_ns` and a `run_id` it comes after all rows made so far.

    >>> row("search reply", task="refund").path.names
    ('search', 'reply')
    """
    ordinal = next(_ORDINALS)
    taken = None if path is None else path_of(path)
    given: dict[str, Any] = {
        **dict.fromkeys(Row._fields),
        "end_ns": ordinal * 10**9,
        "run_id": f"run-{ordinal:06}",
        "start_ns": ordinal * 10**9,
        "condition": BASELINE,
        "branches": tuple(sorted((branches or {}).items())),
        "path": taken,
        "tool_calls": None if taken is None else len(taken.names),
        "failed_calls": None if taken is None else 0,
        "retries": None if taken is None else Retries(retries, retries, "tool" if retries else None, 0, 0, repeats),
        "model_calls": 0,
        "outcome": Outcome.COMPLETED,
        "signals": (),
        "weight": 1,
        "arguments_known": True,
        "by_status": False,
        "models": (),
    }
    return Row(**(given | fields))


def rows_of(*paths: str | Sequence[str] | None, **fields: Any) -> list[Row]:
    """A row for each path, in this order, with these fields.

    >>> [each.path.names for each in rows_of("search", "search reply")]
    [('search',), ('search', 'reply')]
    """
    return [row(path, **fields) for path in paths]
