"""The instrumentation scope of a span, from its attributes, for stores that do not keep it.

Some conventions read a dialect by its scope. Each row names a scope and the attributes that only
its spans have. A span without any takes the scope of its trace, where its spans have but one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from otel_reliability.sources.otlp_json import text


class Marks(NamedTuple):
    """A scope, and what begins a key that only its spans have, in their attributes or in the JSON
    text of their `metadata`.
    """

    scope: str
    keys: tuple[str, ...]
    in_metadata: tuple[str, ...] = ()


TABLE: Final = (
    Marks("langsmith", ("langsmith.span.kind",)),
    Marks("mlflow.tracing.provider", ("mlflow.spanType",)),
    Marks("pydantic-ai", ("pydantic_ai.", "model_request_parameters", "logfire.json_schema")),
    Marks("agent_framework", ("workflow.", "executor.", "edge_group.", "message.source_id")),
    Marks("strands.telemetry.tracer", ("event_loop.", "gen_ai.event.start_time")),
    Marks("gcp.vertex.agent", ("gcp.vertex.agent.",)),
    Marks("haystack", ("haystack.",)),
    Marks("@mastra/otel", ("mastra.",)),
    Marks("openlit.otel.tracing", ("gen_ai.sdk.version", "gen_ai.application_name")),
    Marks(
        "openinference.instrumentation.langchain",
        ("metadata.langgraph_", "metadata.ls_integration", "metadata.lc_agent_name"),
        in_metadata=('"langgraph_', '"ls_integration"', '"lc_agent_name"'),
    ),
)


def scope_of(attributes: Mapping[str, Any]) -> str:
    """Return the scope that the keys of a span's attributes name; "" where none does.

    >>> scope_of({"pydantic_ai.all_messages": "[]"}), scope_of({"http.method": "GET"})
    ('pydantic-ai', '')
    >>> scope_of({"mlflow.spanType": '"TOOL"', "metadata": '{"langgraph_step": 1}'})
    'mlflow.tracing.provider'
    """
    metadata = text(attributes.get("metadata"))
    for marks in TABLE:
        if any(key.startswith(marks.keys) for key in attributes):
            return marks.scope
        if any(key in metadata for key in marks.in_metadata):
            return marks.scope
    return ""


def scopes_of(spans: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the scope of each span of a trace, by their attributes."""
    found = [scope_of(attributes) for attributes in spans]
    distinct = {*found} - {""}
    if len(distinct) != 1:
        return found
    [only] = distinct
    return [scope or only for scope in found]
