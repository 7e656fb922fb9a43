"""The process of an attempt at a Python function: `python -m otel_reliability.experiments.called
package.module:function` calls it with standard input, and prints what it returns.

Spans go where the environment says: by the module's own SDK, else by one that is set up here.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import attach
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_reliability.errors import ConfigurationError

SHAPE: Final = "package.module:function"


def main(target: str) -> None:
    """Call the function with standard input. Raises `ConfigurationError` if it is none, and what it
    raises.
    """
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  as `python -m` does
    function = function_of(target)
    provider = _provider()
    attach(extract({"traceparent": os.environ.get("TRACEPARENT", "")}))
    try:
        result = function(sys.stdin.read())
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
        if result is not None:
            sys.stdout.write(f"{result}\n")
    finally:
        shutdown = getattr(provider, "shutdown", None)
        if shutdown is not None:
            shutdown()


def function_of(target: str) -> Callable[[str], Any]:
    """Return the function that a name like `package.module:function` means.

    >>> function_of("json:loads")("[1]")
    [1]
    """
    module, _, name = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError("--call", target, SHAPE, f"it fails: {error}") from None
    if not callable(found):
        raise ConfigurationError("--call", target, "a function", "name one")
    return found


def _provider() -> object:
    """Return the tracer provider of the module, or a new one that exports as the environment says,
    where it has set none and the exporter is installed.
    """
    given = trace.get_tracer_provider()
    if not isinstance(given, trace.ProxyTracerProvider):
        return given
    exporter = _exporter()
    if exporter is None:
        return given
    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(made)
    return made


def _exporter() -> Any:
    kind = "grpc" if os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" else "http"
    try:
        module = importlib.import_module(f"opentelemetry.exporter.otlp.proto.{kind}.trace_exporter")
    except ImportError:
        return None
    return module.OTLPSpanExporter()


async def _awaited(result: Any) -> Any:
    return await result


if __name__ == "__main__":
    main(sys.argv[1])
