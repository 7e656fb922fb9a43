"""What holds for every test: how many examples a law gets, which tests meet the SDK, and what may
be skipped.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from otel_reliability import price_table

pytest_plugins = ["pytester", "tests.real.plugin"]  # the first for the tests of this file itself

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

CI = bool(os.environ.get("CI"))
os.environ.setdefault(
    "OTEL_RELIABILITY_LOUD", "1"
)  # errors that hooks keep from a host in production fail the test here
# The programs that tests start, some of a thousand, find what the first of them has compiled; and
# each worker finds the rewritten assertions of the run before, which take half of the collection.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# numpy of the workers, and of programs that tests start, computes in the thread that asks: its
# threads wait busily for products as small as ours, two a worker, on the processors of all.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background commands with SIGINT ignored, and the programs that tests interrupt
    # would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.register_at_fork(
    after_in_child=functools.partial(sys.settrace, None)
)  # else it would wait for a lock of coverage's that another thread held at the fork
SDK = re.compile(
    r"^\s*(from|import) opentelemetry\b|\botel_reliability\.(demo|exporter|processor|sources\.sdk|telemetry)\b",
    re.MULTILINE,
)

# Everyone's run draws the same examples, so that no change fails by what another one has left; the
# soak tests and the nightly workflow explore. Deadlines measure the machine, which is shared. A law
# that needs many steps to reach a state is slow on purpose.
settings.register_profile(
    "same",
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("same"), derandomize=False, print_blob=True, max_examples=100
)
settings.register_profile("soak", settings.get_profile("explore"), max_examples=3_000)
settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def price_table_is_loaded() -> None:
    """Load the price table before the first test: until it is there, hooks meet no deadline."""
    price_table.context_window("gpt-4o")


def pytest_configure(config: pytest.Config) -> None:
    """Draw no constants from our code, unless examples are new ones anyway: which it sees depends
    on the modules that are loaded, so on the other tests of a run, and of a worker.
    """
    if config.getoption("--hypothesis-profile") not in ("explore", "soak"):
        providers.is_local_module_file = _is_not_read  # pyright: ignore[reportPrivateImportUsage]


def _is_not_read(path: str) -> bool:
    return False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep modules and tests, which live as long as the process, from the collector: each look at
    all of them took a quarter of a second, and some tests ask for many.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what meets the SDK; leave out what is long, unless the profile is `soak`."""
    for item in items:
        if meets_sdk(item.path):
            item.add_marker("sdk")
    if config.getoption("--hypothesis-profile") != "soak":
        long = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Commands that serve set up logging for their process; a test that runs one in its own leaves
    none of that behind.
    """
    logger = logging.getLogger("otel_reliability")
    handlers = logger.handlers[:]
    level = logger.level
    propagates = logger.propagate
    try:
        return (yield)
    finally:
        logger.handlers[:], logger.propagate = handlers, propagates
        logger.setLevel(level)


@functools.cache
def meets_sdk(path: Path) -> bool:
    """Whether a file of tests, or of doctests, uses the SDK, itself or through a part of ours that
    does.
    """
    return bool(SDK.search(path.read_text(encoding="utf-8")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI is set, a test skips only for want of ../shared: of what has to be there, absence is
    a failure.
    """
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips as a whole."""
    return refuse_skip((yield))


def refuse_skip(report: Report) -> Report:
    """Turn a skip into a failure that tells its reason."""
    if (
        CI
        and report.skipped
        and not hasattr(report, "wasxfail")
        and "../shared" not in str(report.longrepr)
    ):
        report.outcome = "failed"
        report.longrepr = f"CI is set, and this was skipped: {report.longrepr}"
    return report
