"""The agent runs of a test, and targets on them: what the pytest fixture hands to tests."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.model.run import Run
from otel_reliability.report import gate
from otel_reliability.report.build import report_of
from otel_reliability.report.recording import REPORT_SETTINGS, Recording
from otel_reliability.report.target import parse
from otel_reliability.report.view import ReportView
from otel_reliability.sources.sdk import Collector
from otel_reliability.windows.measure import measure
from otel_reliability.windows.window import AgentWindow


class AgentRuns:
    """The agent runs of one test.

    `processor` collects the spans. `settings` say how to count; those of reports where absent.
    """

    def __init__(self, settings: Settings = REPORT_SETTINGS) -> None:
        self.processor = Collector()
        self.settings = settings

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
        chosen = (run for run in self.runs if (not run.nested if agent is None else run.key.agent == agent))
        return measure(chosen, self.settings)

    def require(self, *targets: str, min_runs: int = 1) -> None:
        """Check the runs against targets: `score>=80`, `agents["support"].path_entropy<=0.3`, `reliability.passhat_k>=90`.

        Raises `AssertionError` where one fails or lacks data (with the values and the runs), and `ValueError`
        for a target that cannot be read.
        """
        wanted = [parse(target) for target in targets]
        results = gate.check(self.report, wanted, min_runs)
        missed = [result for result in results if result.state is not gate.TargetState.HELD]
        if missed:
            lines = "\n".join(f"  {result.target.text}: {result.why or gate.described(result)}" for result in missed)
            raise AssertionError(f"{gate.summary(results)}\n{lines}")

    def _recorded(self) -> tuple[Recording, list[Run]]:
        runs: list[Run] = []
        recording = Recording(self.settings, final=runs.extend)
        recording.engine.receive(self.processor.spans)
        recording.close()
        return recording, runs
