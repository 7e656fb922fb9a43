"""Laminar."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.span import Kind, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import invocation, is_nothing, run, runs


def laminar(
    name: str, kind: str, number: int, parent: int | None, session: str, **facts: Any
) -> RawSpan:
    attributes = {
        "lmnr.span.type": kind,
        "lmnr.association.properties.session_id": session,
        **{key.replace("__", "."): value for key, value in facts.items()},
    }
    return span(number, parent, name=name, attributes=attributes, scope="lmnr.tracer")


def test_a_delegated_conversation_is_a_nested_run_with_its_own_session() -> None:
    usage = {"gen_ai__request__model": "cl", "gen_ai__usage__input_tokens": 50}
    found = runs(
        laminar("conversation", "DEFAULT", 1, None, "s-parent"),
        laminar("conversation.run", "DEFAULT", 2, 1, "s-parent"),
        laminar("litellm.completion", "LLM", 3, 2, "s-parent", **usage),
        laminar("task", "TOOL", 4, 2, "s-parent"),
        laminar("conversation", "DEFAULT", 5, 4, "s-child"),
        laminar("terminal", "TOOL", 6, 5, "s-child", lmnr__span__input='{"command": "ls"}'),
    )
    assert [(one.path, one.session_id, one.nested) for one in found] == [
        (("task", "terminal"), "s-parent", False),
        (("terminal",), "s-child", True),
    ]
    assert found[0].input_tokens == 50


def test_functions_are_chains() -> None:
    assert invocation(laminar("plan", "DEFAULT", 1, None, "s"), Kind.CHAIN).name == "plan"
    assert is_nothing(laminar("judge", "EVALUATOR", 1, None, "s"))
    root = laminar("plan", "DEFAULT", 1, None, "s")
    assert run(root, laminar("search", "TOOL", 2, 1, "s")).path == ("search",)
