"""Runs the long forms of the service's tests and writes down what came of them: `python -m
tests.service.soak [TRIAL …]`.

Without a trial all of them are run. What came of each, on which machine and when, goes to
benchmarks/soak.json, and from there to docs/explanation/soak.md; trials that were not run this time
keep what they had.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from benchmarks import run as benchmarks
from tests.kafka.trials import TRIALS as OF_WORKERS
from tests.trial import Trial

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "benchmarks" / "soak.json"
PAGE: Final = ROOT / "docs" / "explanation" / "soak.md"


FOUND: Final = "found: "
"""How a line begins by which a test tells what it has seen."""

_KILL: Final = "tests/service/test_kill.py"
TRIALS: Final = (
    Trial(
        "kills",
        (
            "`kill -9` at random moments under load, a third of them at its recovery; "
            "restart; everything sent twice again"
        ),
        "2 lives of 50 kills",
        (f"{_KILL}::test_nothing_acknowledged_is_lost_in_fifty_kills",),
    ),
    Trial(
        "moments",
        (
            "`kill -9` within every step of group commits, deadlines, checkpoints and "
            "recoveries, in some order"
        ),
        "2 lives of 60 kills",
        (f"{_KILL}::test_nothing_is_lost_whatever_it_was_at_in_any_order",),
    ),
    Trial(
        "load",
        (
            "more than the service can take: memory stays, each refusal has a hint, nothing "
            "acknowledged is lost"
        ),
        "5 minutes",
        ("tests/service/test_load.py::test_more_than_it_can_take[five minutes]",),
    ),
    Trial(
        "hostile",
        (
            "mutated protobuf, JSON and gzip among good runs: no crash, no leak, no damage "
            "to other traces"
        ),
        "100,000 cases",
        ("tests/service/test_hostile.py::test_a_hundred_thousand_bad_requests_harm_nobody",),
    ),
    Trial(
        "openings",
        (
            "malformed openings of HTTP and gRPC: no byte of theirs in a log, no thread lost, "
            "memory flat, others served"
        ),
        "100,000 connections",
        ("tests/service/test_openings.py::test_malformed_openings_harm_nobody[100000]",),
    ),
    Trial(
        "names",
        "agents, tools and sessions without end: series stay within their limits",
        "1,000,000 names",
        ("tests/service/test_hostile.py::test_no_end_of_names_is_an_end_of_series[a million]",),
    ),
    Trial(
        "outage",
        "Prometheus and the sink of our numbers away, while a real Collector sends on",
        "10 minutes",
        (
            (
                "tests/service/test_end_to_end_outages.py::test_whoever_takes_our_numbers_may_be_away[ten "
                ""
                ""
                ""
                "minutes]"
            ),
        ),
    ),
    Trial(
        "windows",
        (
            "runs that come, change, become final and go at random: every number of every "
            "window is exactly what its rows alone give"
        ),
        "100,000 changes, checked 500 times",
        ("tests/windows/test_soak.py::test_a_hundred_thousand_runs_leave_nothing_behind",),
    ),
    Trial(
        "sessions",
        "a report on session files of a coding agent: at most 256 MiB, as fast as OTLP-JSON lines",
        "1 GB",
        ("tests/sources/test_session_soak.py",),
    ),
)


def run(trial: Trial) -> dict[str, Any]:
    """Run a trial, and tell what came of it."""
    began = time.monotonic()
    commit = _commit()
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.xml"
        options = [
            "--hypothesis-profile=soak",
            "--no-cov",
            "-p",
            "no:randomly",
            "-q",
            f"--junitxml={report}",
        ]
        options += ["-o", "junit_logging=system-out"]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *trial.tests, *options], cwd=ROOT, check=False
        )
        counts = _read(report)
    return {
        "outcome": _outcome(ended.returncode, counts),
        **counts,
        "seconds": round(time.monotonic() - began),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "version": version("otel-reliability"),
        "commit": commit,
        "machine": machine(),
    }


def _read(report: Path) -> dict[str, Any]:
    """Return the numbers of tests, the first line of the first failure, and what tests have printed
    as found.
    """
    if not report.exists():
        return {"tests": 0, "failed": 0, "skipped": 0, "why": "", "found": ""}
    tree = ET.parse(report)
    suites = list(tree.iter("testsuite"))
    tests, failures, errors, skipped = (
        sum(int(suite.attrib[name]) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    )
    failure = tree.find(".//testcase/failure")
    message = "" if failure is None else failure.get("message", "")
    printed = (line for out in tree.iter("system-out") for line in (out.text or "").splitlines())
    return {
        "tests": tests,
        "failed": failures + errors,
        "skipped": skipped,
        "why": " ".join(message.partition("\n")[0].replace("|", "/").split())[:120],
        "found": "; ".join(
            line.removeprefix(FOUND).strip() for line in printed if line.startswith(FOUND)
        ),
    }


def _outcome(code: int, counts: Mapping[str, Any]) -> str:
    if code or counts["failed"]:
        return "failed"
    return "passed" if counts["tests"] > counts["skipped"] else "skipped"


def machine() -> str:
    """What it ran on, and how busy that was with other things."""
    cpu, cores = (benchmarks.machine()[name] for name in ("cpu", "cores"))
    return (
        f"{cores} × {cpu}, {platform.system()}, Python {platform.python_version()}, load "
        f"{os.getloadavg()[2]:.0f}"
    )


def _commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip()


def keep(name: str, result: Mapping[str, Any]) -> None:
    """Write a result beside the others, and the page anew. Several of these may run at a time."""
    with RESULTS.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        results: dict[str, Any] = json.loads(file.read() or "{}")
        results[name] = dict(result)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(results, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
        PAGE.write_text(page(results), encoding="utf-8")


HEAD: Final = """# Soak tests

<!-- Made by `python -m tests.service.soak` and `python -m tests.kafka.soak`, which `make soak` runs. -->

Tests that take too long for every change run now and then; this page has their results, failures included. `load` is the load
average of a quarter of an hour on that machine.

## Of the service

"""
TABLE: Final = """| Trial | What it shows | How much | Outcome | Took | When |
|---|---|---|---|---|---|
"""


def page(results: Mapping[str, Any]) -> str:
    """The results as a page.

    >>> page({}).splitlines()[-1]
    '| denied | rights of every kind taken away and given back: logged, waited for, nothing lost | 6 rights | not run | | |'
    """
    service, workers = (
        "\n".join(_line(trial, results.get(trial.name)) for trial in some)
        for some in (TRIALS, OF_WORKERS)
    )
    machines = dict.fromkeys(f"- {one['date']}: {one['machine']}" for one in results.values())
    told = f"\n## On what\n\n{chr(10).join(sorted(machines))}\n" if machines else ""
    return f"{HEAD}{TABLE}{service}\n\n## Of workers on Kafka\n\n{TABLE}{workers}\n{told}"


def _line(trial: Trial, found: Mapping[str, Any] | None) -> str:
    about = f"| {trial.name} | {trial.shows} | {trial.size} |"
    if found is None:
        return f"{about} not run | | |"
    minutes, seconds = divmod(found["seconds"], 60)
    when = f"{found['date']}, version {found['version']}, `{found['commit']}`"
    more = found.get("why") or found.get("found")
    outcome = f"{found['outcome']}: {more}" if more else found["outcome"]
    return f"{about} {outcome} | {minutes} min {seconds} s | {when} |"


def main(names: Sequence[str], trials: Sequence[Trial] = TRIALS) -> int:
    """Run these trials, or all. 1: one of them failed."""
    unknown = set(names) - {trial.name for trial in trials}
    if unknown:
        print(
            f"No trial is called {', '.join(sorted(unknown))}; there are "
            f"{', '.join(trial.name for trial in trials)}."
        )
        return 2
    failed = False
    for trial in trials:
        if not names or trial.name in names:
            found = run(trial)
            keep(trial.name, found)
            print(f"{trial.name}: {found['outcome']} after {found['seconds']} s")
            failed = failed or found["outcome"] == "failed"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
