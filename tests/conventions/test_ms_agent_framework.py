"""Microsoft Agent Framework."""

from __future__ import annotations

from otel_reliability.model.span import Kind
from otel_reliability.testing import span
from tests.conventions.reading import invocation, is_nothing


def test_q08_workflow_run_is_a_container() -> None:
    """Microsoft Agent Framework: `workflow.run` names no operation; `workflow.build` is nothing."""
    assert (
        invocation(span(name="workflow.run", scope="agent_framework"), Kind.WORKFLOW).name is None
    )
    assert is_nothing(span(name="workflow.build", scope="agent_framework"))


def test_one_invocation_of_a_workflow_for_dotnet_is_a_container() -> None:
    scope = "Microsoft.Agents.AI.Workflows"
    assert invocation(span(name="workflow_invoke", scope=scope), Kind.WORKFLOW).name is None
    assert is_nothing(span(name="workflow.session", scope=scope))
