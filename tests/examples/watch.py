"""Run an example as it stands, and write down the runs that its process saw beside those that its
spans give by file.

    python -P tests/examples/watch.py examples/by_hand/agent.py runs.json

Runs inside the environment of the example, so it needs nothing but the package.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.record import without_hashes
from otel_reliability.model.run import CloseReason, Run, RunChange, RunEvent
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.telemetry.live import live_of, settings_from

SPANS = "spans.jsonl"
"""Where an example leaves its spans."""


class Watch:
    """The runs of an engine, as they are now."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._runs: dict[str, Run] = {}
        engine.observers.append(self._observe)

    def _observe(self, event: RunEvent, now: float) -> None:
        if event.change is RunChange.WITHDRAWN:
            del self._runs[event.run.run_id]
        else:
            self._runs[event.run.run_id] = event.run

    def seen(self) -> dict[str, Any]:
        """The runs by when they began, and every reading; why a run was closed is the door's own
        affair.
        """
        runs = sorted(self._runs.values(), key=lambda run: (run.start_ns, run.run_id))
        return {
            "runs": [
                {**asdict(without_hashes(run)), "closed_by": "", "retries": run.retries}
                for run in runs
            ],
            "readings": [
                _readings(self._engine, key) for key in sorted(self._engine.agents.keys())
            ],
        }


def _readings(engine: Engine, key: Any) -> dict[str, float | None]:
    agent = engine.agents.agent(key)
    assert agent is not None
    return {name: reading.value for name, reading in agent.windows["recent"].readings().items()}


def by_file(settings: Settings) -> Watch:
    engine = Engine(settings, clock=lambda: 0.0, wall=None)
    watch = Watch(engine)
    for batch in read_file(SPANS):
        engine.receive(batch.spans)
    engine.flush(CloseReason.END_OF_INPUT)
    return watch


def run(example: str) -> int:
    """Run the example as `python EXAMPLE` does. Gives its exit code."""
    sys.argv = [example]
    try:
        runpy.run_path(example, run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main(example: str, out: str) -> int:
    """Watch the engine that the example's door will share: there is one for the global
    MeterProvider.
    """
    live = live_of(None, settings_from({}))
    watch = Watch(live.engine)
    code = run(example)
    Path(out).write_bytes(
        msgspec.json.encode({"live": watch.seen(), "recorded": by_file(live.settings).seen()})
    )
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
