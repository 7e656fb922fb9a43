from __future__ import annotations

import pytest
from opentelemetry.trace import SpanContext

from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.base import SpanView
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.span import KIND_CLIENT, AgentSpan, Kind
from otel_reliability.telemetry.ordinary import LONGEST, MOST, Ordinary, place
from otel_reliability.testing import span

READER = Reader(Settings(), conventions.TABLE)


def ordinary() -> Ordinary:
    """Nothing met yet."""
    return Ordinary(Reader(Settings(), conventions.TABLE))


def test_what_was_met_is_known() -> None:
    """Its keys, its name and its scope; and from then on places are noted."""
    found = ordinary()
    assert found.since > 2**62
    found.meet("web", "GET", ("http.route",))

    assert (found.keys, found.names, found.scopes) == ({"http.route"}, {"GET"}, {"web"})
    assert found.since < 2**62


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ("web", "execute_tool search"), ("web", "invoke_agent a"), ("web", "chat gpt"), ("web", "crewai.workflow"),
        ("web", "claude_code.tool"), ("haystack", "haystack.pipeline.run"), ("llamaindex.opentelemetry", "FunctionAgent.run"),
        ("gcp.vertex.agent", "invocation"),
    ],
)  # fmt: skip
def test_what_a_convention_may_know_is_not_ordinary(scope: str, name: str) -> None:
    """By a name alone, or by a scope."""
    found = ordinary()
    found.meet(scope, name, ("http.route",))

    assert not found.keys
    assert not found.names
    assert not found.scopes


def test_every_name_that_a_convention_knows_begins_as_it_should() -> None:
    """Conventions that are asked about every scope, and need no key, know nothing by any other name. A new one needs a look."""
    nameless = [one for one in conventions.TABLE if one.names]
    assert {one.name for one in nameless} == {"OpenLLMetry", "Claude Code", "span name"}
    names = {
        "crewai.workflow",
        "claude_code.tool",
        "claude_code.interaction",
        "text_completion m",
        "generate_content m",
    }
    names |= {f"{operation} x" for operation in ("execute_tool", "invoke_agent", "invoke_workflow", "chat")}
    told = {
        name
        for name in names
        for one in nameless
        if one.read(SpanView(span(1, name=name, kind=KIND_CLIENT), "")) is not None
    }

    assert told == names
    assert not any(READER.is_ordinary("", name) for name in told)


def test_memory_of_what_was_met_is_bounded() -> None:
    """A host whose spans are all named differently fills nothing."""
    found = ordinary()
    for number in range(MOST + 50):
        found.meet("web", f"GET /{number}", (f"key-{number}",))
    found.meet("s" * (LONGEST + 1), "GET", ())

    assert (len(found.names), len(found.keys), found.scopes) == (MOST, MOST, {"web"})


@pytest.mark.parametrize(
    ("trace_id", "span_id", "above"), [(0, 1, 2), (1, 0, 2), (2**128, 1, 2), (1, 2**64, 2), (1, 2, 2**64), (1, 2, 0)]
)
def test_an_id_that_is_none_has_no_place(trace_id: int, span_id: int, above: int) -> None:
    """Zero, or too large."""
    assert place(span_id, SpanContext(trace_id, above, is_remote=False), 1) is None


def test_a_place_is_that_of_a_span_nobody_knows() -> None:
    """Ids, the parent, and whether it lives elsewhere; a root has none."""
    below, root = place(2, SpanContext(7, 1, is_remote=True), 5), place(1, SpanContext(7, 1, is_remote=False), 5)

    assert isinstance(below, AgentSpan)
    assert isinstance(root, AgentSpan)
    assert (below.kind, below.parent_id, below.parent_remote, below.end_ns) == (Kind.OTHER, (1).to_bytes(8), True, 5)
    assert (root.trace_id, root.span_id, root.parent_id, root.parent_remote) == (
        (7).to_bytes(16), (1).to_bytes(8), None, False,
    )  # fmt: skip
