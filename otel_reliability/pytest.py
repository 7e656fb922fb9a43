"""A pytest plug-in: record the agent runs of a test, and check them against targets in one line.

    def test_support_agent(reliability):
        for _ in range(5):
            support_agent.run("refund order 1234")
        reliability.require("score>=80", "retry_explosion<=0")

The fixture records the spans of the global TracerProvider: of the one that is set, of one that is
set during the test, and, where none is set, of one that the fixture brings. Add its processor to
any other yourself: `provider.add_span_processor(reliability.processor)`. Targets are those of
`otel-reliability gate`, and so are the numbers: the runs are rebuilt from the spans as from a file.
`--otel-reliability-record FILE` writes the spans of all such tests to a file that `otel-reliability
report` reads.

`@pytest.mark.reliability(require="success_rate>=0.9")` makes an experiment of a test: it is
repeated until the target is decided (`repeat` times at most), with `faults=0.2` also while tools
fail, with `vary="prompt"` also with other forms of the inputs that it passes through the fixture
`varied_input`. `--otel-reliability-max-cost USD` bounds what each such test spends.

pytest loads this in every suite where the package is installed, so it loads nothing before a test
asks for the fixture.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from otel_reliability.experiments.repetition import VariedInput
    from otel_reliability.report.agent_runs import AgentRuns

OPTION: Final = "--otel-reliability-record"
MAX_COST: Final = "--otel-reliability-max-cost"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        OPTION,
        metavar="FILE",
        help="Write the spans of tests with the fixture `reliability` to FILE.",
    )
    parser.addoption(
        MAX_COST,
        metavar="USD",
        type=float,
        help="US dollars that the runs of each test with the mark `reliability` may cost.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and begin a new file, once for all workers of pytest-xdist."""
    config.addinivalue_line(
        "markers",
        "reliability(require, repeat=None, faults=0.0, vary=()): repeat a test until targets are "
        "decided",
    )
    path = config.getoption(OPTION)
    if path is not None and not hasattr(config, "workerinput"):
        Path(path).write_bytes(b"")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Repeat a test that has the marker; its fixtures are those of the first attempt."""
    marker = pyfuncitem.get_closest_marker("reliability")
    if marker is None:
        return None
    from otel_reliability.experiments.repetition import Budget, repeat  # noqa: PLC0415  see above
    from otel_reliability.report.agent_runs import AgentRuns, following_global_provider  # noqa: PLC0415  see above

    wanted = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in wanted}
    most: float | None = pyfuncitem.config.getoption(MAX_COST)
    seen = AgentRuns()
    experiment = partial(
        repeat,
        partial(pyfuncitem.obj, **given),
        pyfuncitem.name,
        *marker.args,
        **marker.kwargs,
        varied=given.get("varied_input"),
        budget=None if most is None else Budget(most, seen.cost_of_new_runs),
    )
    if most is None:
        experiment()
        return True
    with following_global_provider(seen.processor):
        experiment()
    return True


@pytest.fixture
def varied_input() -> VariedInput:
    """Function that a test with the mark `reliability(vary=…)` passes its inputs through: a
    function that returns each in the form for this attempt.
    """
    from otel_reliability.experiments.repetition import VariedInput  # noqa: PLC0415  see above

    return VariedInput()


@pytest.fixture
def reliability(request: pytest.FixtureRequest) -> Iterator[AgentRuns]:
    """The agent runs of this test: `require` targets of them, or use `runs`, `report` and
    `measure()`.
    """
    from otel_reliability.report.agent_runs import AgentRuns, following_global_provider  # noqa: PLC0415  see above

    found = AgentRuns()
    with following_global_provider(found.processor):
        yield found
    path: str | None = request.config.getoption(OPTION)
    if path is not None:
        from otel_reliability.span_file import append  # noqa: PLC0415  see above

        append(Path(path), found.processor.spans)
    found.processor.stop()
