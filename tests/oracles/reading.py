"""How tests read the oracle fixtures that lie beside the project. Where they are absent, the tests
are skipped by name.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.shared import SHARED, shared


def load(path: str) -> dict[str, Any]:
    """A JSON file below ../shared; skips the test that asks where there is none."""
    return json.loads(shared(path).read_text(encoding="utf-8"))


def each(path: str, *keys: str) -> list[Any]:
    """The cases below `keys` in a JSON file, as parameters named by their id; one skipped case
    where there is no file.
    """
    file = SHARED / path
    if not file.exists():
        return [
            pytest.param(
                None, marks=pytest.mark.skip(reason=f"../shared/{path} is not here"), id="absent"
            )
        ]
    found: Any = json.loads(file.read_text(encoding="utf-8"))
    for key in keys:
        found = found[key]
    return [pytest.param(case, id=_name(case)) for case in found]


def _name(case: dict[str, Any]) -> str:
    return case.get("id") or "-".join(str(value) for value in list(case.values())[:2])


def close(found: float | None, expected: float | None) -> bool:
    """Whether a value is what the oracle says, to 1e-9; None only where it says null."""
    if found is None or expected is None:
        return found is None and expected is None
    return found == pytest.approx(expected, abs=1e-9, rel=0)
