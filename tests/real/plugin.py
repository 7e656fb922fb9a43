"""Fixtures that start real programs: `collector`, `prometheus`, `promtool`, `kafka`, `helm`, and
the trace stores `jaeger`, `mlflow` and `phoenix`.

`collector`, `prometheus` and `kafka` are factories: each call starts one more program on free ports
of loopback, waits until it is ready and returns its handle (addresses, log, `stop`, `kill`). A
program ends with the test that started it. Logs and stores are in the test's `tmp_path`. A test
that asks for one of these fixtures is marked `real`. Where the program is not installed it is
skipped with the reason; the suite's conftest makes that a failure where CI is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from tests.real.collector.handle import Collectors
from tests.real.components import folder_of, program_on_path
from tests.real.kafka.handle import Kafkas
from tests.real.prometheus.handle import Prometheuses, Promtool
from tests.real.stores.handle import Jaeger, Mlflow, Phoenix, Store

S = TypeVar("S", bound=Store)

STORES = frozenset({"jaeger", "mlflow", "phoenix"})
FIXTURES = STORES | {"collector", "prometheus", "promtool", "kafka", "helm"}


@pytest.hookimpl(tryfirst=True)  # before `-m` reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a real program, themselves or through another fixture."""
    for item in items:
        if FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("real")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collectors]:
    """Starts OpenTelemetry Collectors: `collector(config)`."""
    program = folder_of("collector") / "bin" / "otelcol"
    with ExitStack() as running:
        yield Collectors(program, tmp_path, running)


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheuses]:
    """Starts Prometheus servers: `prometheus({"job": "127.0.0.1:9464"})`."""
    program = folder_of("prometheus") / "bin" / "prometheus"
    with ExitStack() as running:
        yield Prometheuses(program, tmp_path, running)


@pytest.fixture
def promtool() -> Promtool:
    """Prometheus' checker of rules, configurations and metrics."""
    return Promtool(folder_of("prometheus") / "bin" / "promtool")


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafkas]:
    """Starts Kafka brokers: `kafka()`."""
    jars = folder_of("kafka") / "lib"
    with ExitStack() as running:
        yield Kafkas(program_on_path("java"), jars, tmp_path, running)


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """A Jaeger that keeps traces in memory, for all tests of a worker."""
    yield from running(Jaeger(folder_of("jaeger"), tmp_path_factory.mktemp("jaeger")))


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mlflow]:
    """An MLflow server on SQLite, for all tests of a worker."""
    yield from running(Mlflow(folder_of("mlflow"), tmp_path_factory.mktemp("mlflow")))


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    """A Phoenix on SQLite, for all tests of a worker."""
    yield from running(Phoenix(folder_of("phoenix"), tmp_path_factory.mktemp("phoenix")))


def running(store: S) -> Iterator[S]:
    """Start a store; stop it in the end."""
    store.start()
    yield store
    store.stop(store.ends_within_s)


@pytest.fixture(scope="session")
def helm() -> Path:
    """Helm, which renders charts."""
    return folder_of("helm") / "bin" / "helm"
