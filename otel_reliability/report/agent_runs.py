"""The agent runs of a test, and targets on them: what the pytest fixture hands to tests."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from otel_reliability.model.run import Run
from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.report import gate
from otel_reliability.report.build import report_of
from otel_reliability.report.target import parse
from otel_reliability.report.view import ReportView
from otel_reliability.sources.sdk import Collector
from otel_reliability.windows.window import AgentWindow, measure


class AgentRuns:
    """The agent runs of one test, counted as in reports. `processor` collects the spans."""

    def __init__(self) -> None:
        self.processor = Collector()
        self._counted = 0

    @property
    def runs(self) -> list[Run]:
        """The runs rebuilt from the spans so far, nested ones too, by when they began."""
        return self._recorded()[1]

    @property
    def report(self) -> ReportView:
        """The report on the agents."""
        return report_of(self._recorded()[0])

    def measure(self, agent: str | None = None) -> AgentWindow:
        """All numbers of an agent's runs; of all top-level runs where no agent is named."""
        chosen = (
            run
            for run in self.runs
            if (not run.nested if agent is None else run.key.agent == agent)
        )
        return measure(chosen, REPORT_SETTINGS)

    def require(self, *targets: str, min_runs: int = 1) -> None:
        """Check the runs against targets: `score>=80`, `agents["support"].path_entropy<=0.3`,
        `reliability.passhat_k>=90`.

        Raises `AssertionError` where one fails or lacks data (with metric, agent, value, bound and
        runs of each), and `ValueError` for a target that cannot be read.
        """
        wanted = [parse(target) for target in targets]
        results = gate.check(self.report, wanted, min_runs)
        missed = [result for result in results if result.state is not gate.TargetState.HELD]
        __tracebackhide__ = True  # pytest shows the line of the test, not of this
        if missed:
            lines = [
                line
                for result in missed
                for line in (result.sentence, result.doubt, *result.reasons)
                if line
            ]
            raise AssertionError(
                "\n  ".join([gate.summary(results), *lines, *gate.flagged(missed)])
            )

    def cost_of_new_runs(self) -> float | None:
        """Return what the top-level runs since the last call cost, in US dollars; None where there
        is none, or one does not say.
        """
        spans = self.processor.spans
        runs: list[Run] = []
        recording = Recording(final=runs.extend)
        recording.engine.receive(spans[self._counted :])
        recording.close()
        self._counted = len(spans)
        costs = [run.cost for run in runs if not run.nested]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def _recorded(self) -> tuple[Recording, list[Run]]:
        runs: list[Run] = []
        recording = Recording(final=runs.extend)
        recording.engine.receive(self.processor.spans)
        recording.close()
        return recording, runs


_BROUGHT: Final = TracerProvider(shutdown_on_exit=False)
"""Global where a suite sets none: tracers of the API keep the provider that they first met, so
there is only one.
"""


@contextmanager
def following_global_provider(processor: SpanProcessor) -> Generator[None]:
    """Add a processor to the global TracerProvider, to those that are set meanwhile, and, where
    none is set, to one brought here.

    A provider that is brought does not count as set: the code under test may still set its own.
    """
    set_provider: Any = trace._set_tracer_provider  # noqa: SLF001
    _BROUGHT.add_span_processor(processor)
    current: Any = trace.get_tracer_provider()
    if isinstance(current, trace.ProxyTracerProvider):
        trace._TRACER_PROVIDER = _BROUGHT  # noqa: SLF001
    elif current is not _BROUGHT and hasattr(current, "add_span_processor"):
        current.add_span_processor(processor)

    def set_and_follow(provider: Any, *arguments: Any, **named: Any) -> None:
        set_provider(provider, *arguments, **named)
        if trace.get_tracer_provider() is provider and hasattr(provider, "add_span_processor"):
            provider.add_span_processor(processor)

    try:
        with patch.object(trace, "_set_tracer_provider", set_and_follow):
            yield
    finally:
        if trace.get_tracer_provider() is _BROUGHT:
            trace._TRACER_PROVIDER = None  # noqa: SLF001
