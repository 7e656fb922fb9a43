"""No rule and no formula lives twice: of the stages below, the workers use the doors that the single process uses."""

from __future__ import annotations

import ast
from pathlib import Path

import otel_reliability.kafka

FOLDER = Path(str(otel_reliability.kafka.__file__)).parent
DOORS = {
    "assembly": {
        "otel_reliability.assembly.assemble.Assemble",
        "otel_reliability.assembly.assembler.Assembler",
    },
    "conventions": {"otel_reliability.conventions", "otel_reliability.conventions.reader.Reader"},
    "change": {"otel_reliability.change.observation.Observation"},
    "windows": set[str](),
    "metrics": set[str](),
}
"""What of each stage may be named: where telemetry goes in, how its spans lie, and how rows of another version are read."""


def imported() -> set[str]:
    """Everything of ours that the folder imports, with its module."""
    found: set[str] = set()
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                found |= {f"{node.module}.{one.name}" for one in node.names}
    return {name for name in found if name.startswith("otel_reliability.")}


def test_workers_use_the_doors_of_the_single_process() -> None:
    """They name an assembler, a reader and an engine, and nothing behind them; and nothing that counts."""
    for stage, doors in DOORS.items():
        of_stage = {name for name in imported() if name.split(".")[1] == stage}
        assert of_stage <= doors, stage
    assert "otel_reliability.engine.Engine" in imported()
    assert "otel_reliability.assembly.assembler.Assembler" in imported()


def test_workers_compute_nothing() -> None:
    """No library of numbers is near."""
    for file in FOLDER.glob("*.py"):
        names = {
            alias.name.partition(".")[0]
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert names.isdisjoint({"math", "statistics", "numpy", "fractions"}), file.name
