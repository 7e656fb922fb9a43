"""The pytest plug-in: runs of a test's agents, and targets on them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_reliability.errors import UnknownMetric
from otel_reliability.report.agent_runs import AgentRuns

pytest_plugins = ["pytester"]

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}


def _act(runs: AgentRuns, paths: list[list[str]], **notes: object) -> None:
    """Run an agent once a path, under a provider of its own."""
    provider = TracerProvider()
    provider.add_span_processor(runs.processor)
    tracer = provider.get_tracer("test")
    for path in paths:
        with tracer.start_as_current_span("invoke_agent support", attributes={**AGENT, **notes}):  # pyright: ignore[reportArgumentType]
            for tool in path:
                attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
                with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                    pass


def test_runs_are_rebuilt_from_the_spans_of_the_test(reliability: AgentRuns) -> None:
    """Each invocation is a run with its path, readable as soon as it has ended."""
    _act(reliability, [["search"], ["search", "book"]])

    assert [run.path for run in reliability.runs] == [("search",), ("search", "book")]
    assert reliability.measure().reading("distinct_paths").value == 2


def test_targets_that_hold_are_silent(reliability: AgentRuns) -> None:
    """The same path every time: nothing is lost on entropy."""
    _act(reliability, [["search"]] * 3)

    reliability.require("path_entropy<=0", 'agents["support"].retry_explosion<=0')


def test_a_target_that_fails_says_why(reliability: AgentRuns) -> None:
    """The message has the target, and the number that was found."""
    _act(reliability, [["search"], ["book"]])

    with pytest.raises(AssertionError, match=r"path_entropy<=0\.5"):
        reliability.require("path_entropy<=0.5")


def test_missing_evidence_is_no_success(reliability: AgentRuns) -> None:
    """No outcome is known, so a pass rate cannot hold; nor can anything with fewer runs than asked for."""
    _act(reliability, [["search"]] * 3)

    with pytest.raises(AssertionError, match="outcome_consistency"):
        reliability.require("outcome_consistency>=0.5")
    with pytest.raises(AssertionError, match="path_entropy"):
        reliability.require("path_entropy<=1", min_runs=10)


def test_a_wrong_name_is_told_with_its_neighbours(reliability: AgentRuns) -> None:
    """A target that names no metric is an error of its own, not a failed assertion."""
    with pytest.raises(UnknownMetric, match="path_entropy"):
        reliability.require("path_entropie<=1")


def test_the_fixture_follows_the_global_provider(pytester: pytest.Pytester) -> None:
    """In a suite whose conftest sets a provider, a test needs nothing but the fixture; tests do not see each other's runs."""
    pytester.makeconftest(
        """
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        trace.set_tracer_provider(TracerProvider())
        """
    )
    pytester.makepyfile(
        """
        from opentelemetry import trace

        def act(reliability):
            name = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
            with trace.get_tracer("t").start_as_current_span("invoke_agent bot", attributes=name):
                pass
            assert [run.key.agent for run in reliability.runs] == ["bot"]

        def test_one(reliability):
            act(reliability)

        def test_two(reliability):
            act(reliability)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=2)
