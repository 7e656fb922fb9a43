"""What is told of an agent: so that after a restart it can be told again before its runs are measured anew."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics import SPECS
from otel_reliability.model.reading import MetricSpec, Reading

Plain = Any
Series: TypeAlias = Sequence[tuple[MetricSpec, tuple[tuple[str, str], ...], Reading]]

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_BY_NAME: Final = {spec.name: spec for spec in SPECS}


class Told(NamedTuple):
    """What is emitted of one agent: when its last run ended, and the series of each window, by its name."""

    last_run_ns: int | None
    windows: Mapping[str, Series]


def write_told(told: Told) -> Plain:
    """The same in plain values."""
    windows = {
        name: [(spec.name, attributes, tuple(reading)) for spec, attributes, reading in series]
        for name, series in told.windows.items()
    }
    return (told.last_run_ns, windows)


def read_told(plain: Plain) -> Told:
    """What `write_told` was given, by a process that measures alike (`measure_of`).

    >>> told = Told(7, {"recent": [(SPECS[0], (), Reading(0.5, 3, (), "few"))]})
    >>> read_told(write_told(told)) == told
    True
    """
    last_run_ns, windows = plain
    return Told(
        last_run_ns,
        {
            name: [(_BY_NAME[spec], attributes, Reading(*reading)) for spec, attributes, reading in series]
            for name, series in windows.items()
        },
    )


def measure_of(settings: Settings) -> str:
    """What tells apart processes that would tell other numbers of the same runs: by their settings, or by their code."""
    return hashlib.sha256(f"{_code()} {settings!r}".encode()).hexdigest()


@cache
def _code() -> str:
    found = hashlib.sha256()
    for folder in ("metrics", "model", "windows"):
        for file in sorted((_PACKAGE / folder).rglob("*.py")):
            found.update(file.read_bytes())
    return found.hexdigest()
