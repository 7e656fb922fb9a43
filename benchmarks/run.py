"""Runs the benchmarks, each in a process of its own, and tells what they found: a table for people, JSON for machines."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
PREFIX: Final = "bench_"
PACKAGES: Final = (
    "opentelemetry-sdk", "opentelemetry-proto", "protobuf", "numpy", "python-Levenshtein", "rapidfuzz", "grpcio",
)  # fmt: skip


def names() -> list[str]:
    """The benchmarks there are: every `bench_<name>.py` beside this file that has rows. (Others are run by themselves.)"""
    found = (path for path in HERE.glob(f"{PREFIX}*.py") if "def rows(" in path.read_text())
    return sorted(path.stem.removeprefix(PREFIX) for path in found)


def rows_of(name: str) -> list[Row]:
    """What one benchmark finds."""
    found: list[Row] = importlib.import_module(f"benchmarks.{PREFIX}{name}").rows()
    return found


def measured(chosen: Sequence[str], console: Console) -> tuple[list[Row], list[str]]:
    """The rows of these benchmarks, one process after another: none leaves a heap to the next. Then those that failed."""
    rows: list[Row] = []
    failed: list[str] = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for name in chosen:
            with console.status(f"{name} …"):
                try:
                    rows += processes.submit(rows_of, name).result()
                except Exception:  # noqa: BLE001  what the others found is not lost with it
                    console.print_exception()
                    failed.append(name)
    return rows, failed


def machine() -> dict[str, object]:
    """What it was measured on."""
    model = next((line for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    return {
        "cpu": model.partition(":")[2].strip() or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """What it was measured with."""
    return {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}


def write(rows: Sequence[Row]) -> None:
    """Write the results for machines, and for pages that are made from them."""
    told = {"machine": machine(), "versions": versions(), "rows": [_rounded(row)._asdict() for row in rows]}
    RESULTS.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def table(rows: Sequence[Row]) -> Table:
    """The results for people."""
    shown = Table(title="Benchmarks")
    for heading in ("what", "found", "middle half", "at most", "against"):
        shown.add_column(heading, justify="right" if heading in {"found", "middle half", "at most"} else "left")
    for row in rows:
        low, high = row.spread
        limit = "" if row.at_most is None else _number(row.at_most)
        style = "bold red" if row.over else "green" if row.at_most is not None else ""
        found = f"{_number(row.value)} {row.unit}"
        shown.add_row(row.name, found, f"{_number(low)} – {_number(high)}", limit, row.against, style=style)
    return shown


def main(arguments: Sequence[str]) -> int:
    """Run these benchmarks, or all, which also writes the results.

    1 where a row is over its limit or a benchmark failed, 2 for a name unknown.
    """
    console, there = Console(), names()
    if unknown := set(arguments) - set(there):
        print(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(there)}", file=sys.stderr)
        return 2
    rows, failed = measured(arguments or there, console)
    console.print(table(rows))
    if not arguments:
        write(rows)
    over = [row for row in rows if row.over]
    for row in over:
        console.print(
            f"over its limit: {row.name}: {_number(row.value)} {row.unit}, at most {_number(row.at_most or 0)}"
        )
    for name in failed:
        console.print(f"failed, so none of its rows is here: {name}")
    return 1 if over or failed else 0


def _rounded(row: Row) -> Row:
    low, high = row.spread
    return row._replace(value=_digits(row.value), spread=(_digits(low), _digits(high)))


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
