"""Run the benchmarks, each in a process of its own, and write what they found: a table for people,
JSON for the docs.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row
from benchmarks.recorded import Unavailable

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
PREFIX: Final = "bench_"
PACKAGES: Final = (
    "opentelemetry-sdk",
    "protobuf",
    "numpy",
    "python-Levenshtein",
    "grpcio",
    "aiohttp",
)


def names() -> list[str]:
    """Return the names of the benchmarks: one for each `bench_<name>.py` in this folder."""
    return sorted(path.stem.removeprefix(PREFIX) for path in HERE.glob(f"{PREFIX}*.py"))


def rows_of(name: str) -> list[Row]:
    """Return the rows of one benchmark."""
    found: list[Row] = importlib.import_module(f"benchmarks.{PREFIX}{name}").rows()
    return found


def measured(chosen: Sequence[str], console: Console) -> tuple[list[Row], list[str]]:
    """Return the rows of these benchmarks, and the names of those that failed. Each runs in a new
    process.

    Progress is printed line by line, so that it shows in a log too.
    """
    rows: list[Row] = []
    failed: list[str] = []
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as processes:
        for place, name in enumerate(chosen, 1):
            console.print(f"{place} of {len(chosen)}: {name} …")
            began = time.monotonic()
            try:
                rows += processes.submit(rows_of, name).result()
            except Unavailable as reason:
                console.print(f"skipped: {name}: {reason}")
            except Exception:  # noqa: BLE001 (the rows of the others are kept)
                console.print_exception()
                failed.append(name)
            console.print(f"    {time.monotonic() - began:.0f} s")
    return rows, failed


def machine() -> dict[str, object]:
    """Return what the benchmarks run on."""
    model = next((line for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    return {
        "cpu": model.partition(":")[2].strip() or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return what the benchmarks run with."""
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def write(rows: Sequence[Row]) -> None:
    """Write the results, for the pages that are generated from them."""
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    found = {
        "date": date,
        "machine": machine(),
        "versions": versions(),
        "rows": [_rounded(row)._asdict() for row in rows],
    }
    RESULTS.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def table(rows: Sequence[Row]) -> Table:
    """Return the results for people."""
    shown = Table(title="Benchmarks")
    for heading in ("what", "measured", "quartiles", "limit", "against"):
        shown.add_column(heading, justify="left" if heading in {"what", "against"} else "right")
    for row in rows:
        low, high = row.spread
        limit = "" if row.at_most is None else _number(row.at_most)
        style = "bold red" if row.over else "green" if row.at_most is not None else ""
        measured = f"{_number(row.value)} {row.unit}"
        shown.add_row(
            row.name, measured, f"{_number(low)} – {_number(high)}", limit, row.against, style=style
        )
    return shown


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmarks, or all, which also writes the results.

    Return 1 where a row is over its limit or a benchmark failed, 2 for an unknown name.
    """
    console = Console()
    known = names()
    if unknown := set(arguments) - set(known):
        print(
            f"unknown benchmark {', '.join(sorted(unknown))}; name any of {', '.join(known)}",
            file=sys.stderr,
        )
        return 2
    rows, failed = measured(arguments or known, console)
    console.print(table(rows))
    if not arguments:
        write(rows)
    over = [row for row in rows if row.over]
    for row in over:
        console.print(
            f"over its limit: {row.name}: {_number(row.value)} {row.unit}, limit "
            f"{_number(row.at_most or 0)}"
        )
    for name in failed:
        console.print(f"failed: {name}: its rows are missing")
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
