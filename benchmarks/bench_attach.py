"""What attaching the processor adds to a process that has the SDK already: time to start, and
memory.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.measure import ROUNDS, Row, in_turns, row
from benchmarks.serving import Used, finished

SDK: Final = """
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
tracing, metering = TracerProvider(), MeterProvider([InMemoryMetricReader()])
{attach}
attributes = {{"gen_ai.operation.name": "invoke_agent"}}
with tracing.get_tracer("agent").start_as_current_span("invoke_agent a", attributes=attributes):
    pass
import os
os._exit(0)
"""
ATTACH: Final = """
from otel_reliability import ReliabilitySpanProcessor
tracing.add_span_processor(ReliabilitySpanProcessor(meter_provider=metering))
"""


def rows(rounds: int = ROUNDS) -> list[Row]:
    """Return the time and the memory that attaching adds, up to the end of the first span."""
    with TemporaryDirectory() as compiled:
        _run(ATTACH, compiled)
        used = in_turns(
            {"ours": lambda: _run(ATTACH, compiled), "sdk": lambda: _run("", compiled)}, rounds
        )
    pairs = list(zip(used["ours"], used["sdk"], strict=True))
    against = "over the SDK alone, until the end of the first span"
    return [
        row(
            "attach: time",
            [ours.seconds - sdk.seconds for ours, sdk in pairs],
            at_most=0.15,
            unit="s CPU",
            against=against,
        ),
        row(
            "attach: memory",
            [(ours.memory - sdk.memory) / 1e6 for ours, sdk in pairs],
            at_most=12,
            unit="MB",
            against=against,
        ),
    ]


def _run(attach: str, compiled: str) -> Used:
    """Run a program to its end, with modules compiled as those of an installed package are.

    It ends before exit handlers, which close runs.
    """
    return finished("-E", "-X", f"pycache_prefix={compiled}", "-c", SDK.format(attach=attach))
