"""Documents against docs/reference/report.schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

SCHEMA: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "docs" / "reference" / "report.schema.json").read_text("utf-8")
)


def faults(document: Any) -> Iterator[str]:
    validator: Any = Draft202012Validator(SCHEMA)
    return (f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(document))
