"""Real spans of a real SDK, as a processor is handed them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import Tracer

from otel_reliability.engine import Engine

RESOURCE = Resource({"service.name": "shop", "deployment.environment.name": "test"})
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "agent"}
TOOL = {"gen_ai.operation.name": "execute_tool"}


class Keeping(SpanProcessor):
    """Keeps the spans that ended."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


class Calling(SpanProcessor):
    """Calls a function with every span that ends."""

    def __init__(
        self, on_end: Callable[[ReadableSpan], None], on_start: Callable[[Span], None] | None = None
    ) -> None:
        self._on_end = on_end
        self._on_start = on_start

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        if self._on_start is not None:
            self._on_start(span)

    def on_end(self, span: ReadableSpan) -> None:
        self._on_end(span)


def provider(*processors: SpanProcessor, **options: Any) -> TracerProvider:
    options.setdefault("resource", RESOURCE)
    made = TracerProvider(shutdown_on_exit=False, **options)
    for processor in processors:
        made.add_span_processor(processor)
    return made


@contextmanager
def agent_run(tracer: Tracer, name: str = "agent", **attributes: Any) -> Generator[Span]:
    with tracer.start_as_current_span(
        f"invoke_agent {name}", attributes={**AGENT, "gen_ai.agent.name": name, **attributes}
    ) as span:
        yield cast("Span", span)


def tool_call(tracer: Tracer, name: str = "search", **attributes: Any) -> None:
    with tracer.start_as_current_span(
        f"execute_tool {name}", attributes={**TOOL, "gen_ai.tool.name": name, **attributes}
    ):
        pass


def run(
    tracer: Tracer, tools: str = "search reply", name: str = "agent", **attributes: Any
) -> None:
    with agent_run(tracer, name, **attributes):
        for tool in tools.split():
            tool_call(tracer, tool)


def ended(
    attributes: dict[str, Any], name: str = "span", *, scope: str = "test", **options: Any
) -> ReadableSpan:
    """One ended span, child of another that is not kept."""
    keeping = Keeping()
    tracer = provider(keeping).get_tracer(scope)
    with (
        tracer.start_as_current_span("parent"),
        tracer.start_as_current_span(name, attributes=attributes, **options),
    ):
        pass
    return keeping.ended[0]


@contextmanager
def held(engine: Engine) -> Generator[None]:
    inside = threading.Event()
    leave = threading.Event()

    def hold(_: object) -> None:
        inside.set()
        leave.wait(60)

    holder = threading.Thread(target=engine.read, args=(hold,))
    holder.start()
    inside.wait(60)
    try:
        yield
    finally:
        leave.set()
        holder.join()
