"""Metrics of input groups are the same in every deployment mode and after a restart."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.reading import Reading
from otel_reliability.model.span import RawSpan
from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.read_view import ReadView
from otel_reliability.recording import Recording, for_report
from otel_reliability.sources import sdk
from otel_reliability.sources.otlp_write import traces_json
from tests.demo.stage import SECOND, SeededIds
from tests.demo.test_agreement import collected, compared
from tests.kafka.streams import Aggregating, Assembling, Told
from tests.real.waiting import until
from tests.service.running import JSON, serving
from tests.telemetry.meters import Meters
from tests.telemetry.numbers import Numbers, prometheus_numbers

KINDS: Final = (
    (("cancel my order please", "please cancel the order"), ("find", "cancel")),
    (("what is the weather tomorrow", "weather in Paris tomorrow"), ("forecast",)),
    (("reset the password of my account", "I want a new password"), ("verify", "reset", "mail")),
)
AGENTS: Final = ("support", "billing")
RUNS: Final = 60
GROUPED: Final = (
    "path_entropy",
    "tool_variance",
    "tool_call_variation",
    "branch_instability",
    "path_similarity",
    "score",
)


def traffic(seed: int, resource: Resource, now_ns: int) -> list[RawSpan]:
    """Return the spans of runs of three kinds of request, some noisy, some with a task, some
    without any input, as the SDK makes them.
    """
    dice = random.Random(seed)
    kept = InMemorySpanExporter()
    provider = TracerProvider(
        resource=resource, id_generator=SeededIds(dice), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(kept))
    perform(provider, dice, now_ns)
    return list(map(sdk.read, kept.get_finished_spans()))


def perform(provider: TracerProvider, dice: random.Random, now_ns: int) -> None:
    tracer = provider.get_tracer("agent")
    for number in range(RUNS):
        texts, path = dice.choice(KINDS)
        tools = [*path, *dice.choices(("retry", "search"), k=dice.random() < 0.4)]
        about: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": dice.choice(AGENTS),
            "reliability.branch.route": dice.choice(("left", "left", "right")),
        }
        lot = dice.random()
        if lot < 0.7:
            about["input.value"] = dice.choice(texts)
        elif lot < 0.9:
            about["reliability.task.id"] = texts[0]
        at = now_ns - (RUNS - number) * 10 * SECOND
        with tracer.start_as_current_span(
            "invoke_agent", attributes=about, start_time=at, end_on_exit=False
        ) as root:
            for tool in tools:
                named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
                tracer.start_span("execute_tool", attributes=named, start_time=at + SECOND).end(
                    at + 2 * SECOND
                )
            root.end(at + 3 * SECOND)


def within_process(settings: Settings, seed: int, resource: Resource, now_ns: int) -> Numbers:
    """Return the numbers of a processor in the process of the agents."""
    meters = Meters()
    dice = random.Random(seed)
    provider = TracerProvider(
        resource=resource, id_generator=SeededIds(dice), shutdown_on_exit=False
    )
    processor = ReliabilitySpanProcessor(settings, meter_provider=meters.provider)
    provider.add_span_processor(processor)
    perform(provider, dice, now_ns)
    processor.force_flush()
    found = collected(meters)
    processor.shutdown()
    return compared(found)


def of_workers(settings: Settings, spans: Sequence[RawSpan]) -> dict[str, dict[str, Reading]]:
    """Return the readings of workers on Kafka, taken over by others in between."""
    reader = Reader(settings, conventions.TABLE)
    first, second = Assembling(settings), Aggregating(settings)
    for start in range(0, len(spans), 7):
        first.take([cast("Told", reader.read(one)) for one in spans[start : start + 7]])
    first.take_over(0)
    first.pass_time(3_000.0, step=50.0)
    for start in range(0, len(first.told), 10):
        second.take(first.told[start : start + 10])
        second.tick()
        second.take_over(start % second.partitions)
    return {key.agent: grouped(readings) for (key, _), readings in second.readings().items()}


def without_input(span: RawSpan) -> RawSpan:
    left = {name: value for name, value in span.attributes.items() if name != "input.value"}
    return replace(span, attributes=left)


def grouped(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    return {name: readings[name] for name in GROUPED}


def readings_of(view: ReadView) -> dict[str, dict[str, Reading]]:
    states = (view.agent(key) for key in view.keys())  # noqa: SIM118  no mapping
    return {
        state.key.agent: grouped(dict(state.first_window.readings()))
        for state in states
        if state is not None
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_metrics_of_input_groups_are_the_same_in_every_deployment_mode(
    seed: int, tmp_path: Path
) -> None:
    folder = str(tmp_path / "state")
    resource = Resource({"service.name": "shop"})
    with serving(state=folder) as running:
        settings, now_ns = running.service.engine.settings, running.clock.wall()
        spans = traffic(seed, resource, now_ns)
        for start in range(0, len(spans), 20):
            body = json.dumps(traces_json(spans[start : start + 20])).encode()
            assert running.post("traces", body, JSON).status == 200
        running.finalize()
        live = compared(prometheus_numbers(running.metrics()))
        expected = readings_of(running.service.engine.view)
        clock = running.clock
    with serving(state=folder, clock=clock) as running:
        until(lambda: len(running.service.engine.view.keys()) == len(AGENTS), "the agents")
        until(lambda: not running.service.engine.agents.unloaded, "the agents to be loaded")
        again = compared(prometheus_numbers(running.metrics()))
        restarted = readings_of(running.service.engine.view)

    path = tmp_path / "spans.jsonl"
    dice = random.Random(seed)
    path.write_text(
        "".join(f"{json.dumps(traces_json([one]))}\n" for one in dice.sample(spans, len(spans)))
    )
    recording = Recording(for_report(settings, settings.windows[0]))
    recording.read(path)
    reported = readings_of(recording.close().engine.view)

    assert expected.keys() == {*AGENTS}
    assert all(one["path_entropy"].value for one in expected.values())
    assert restarted == expected
    assert reported == expected
    assert of_workers(settings, spans) == expected
    assert of_workers(settings, list(map(without_input, spans))) != expected
    assert again == live
    assert within_process(settings, seed, resource, now_ns) == live
