from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_reliability.recording import Recording
from otel_reliability.report.agent_runs import AgentRuns
from otel_reliability.testing import write_otlp
from tests.report.build import runs

pytest_plugins = ["pytester"]

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}


def _act(made: AgentRuns, paths: list[list[str]], **notes: object) -> None:
    provider = TracerProvider()
    provider.add_span_processor(made.processor)
    tracer = provider.get_tracer("test")
    for path in paths:
        with tracer.start_as_current_span("invoke_agent support", attributes={**AGENT, **notes}):  # pyright: ignore[reportArgumentType]
            for tool in path:
                attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
                with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                    pass


def test_runs_are_rebuilt_from_the_spans_of_the_test(reliability: AgentRuns) -> None:
    _act(reliability, [["search"], ["search", "book"]])

    assert [run.path for run in reliability.runs] == [("search",), ("search", "book")]
    assert reliability.measure().reading("distinct_paths").value == 2


def test_failed_target_names_metric_agent_value_bound_and_runs(reliability: AgentRuns) -> None:
    _act(reliability, [["search"], ["book"]])

    with pytest.raises(AssertionError) as failed:
        reliability.require("path_entropy<=0.5", "score>=100", "retry_explosion<=0")

    lines = str(failed.value).splitlines()
    first, entropy, score = (line for line in lines if "failed" in line or "required" in line)
    assert first == "2 failed, 1 held"
    assert entropy == "  support: path_entropy is 1, required <= 0.5 (2 runs)"
    assert re.fullmatch(
        r"  support: score is [\d.]+, required >= 100 \(2 runs; from 60 of 100 points assessed\)",
        score,
    )
    assert lines[2].startswith("  2 runs prove little")
    assert any(line.startswith("  Path entropy −") for line in lines)


SUPPORT_AGENT = """
    from opentelemetry import trace

    tracer = trace.get_tracer("support")  # of the API: it finds the provider when it is used
    NAME = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
    TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}

    def run(order):
        with tracer.start_as_current_span("invoke_agent bot", attributes=NAME):
            with tracer.start_as_current_span("execute_tool search", attributes=TOOL):
                pass
"""
PROVIDER = """
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
"""
TWO_TESTS = """
    import support_agent
    {preparation}

    def test_one(reliability):
        {within}
        support_agent.run("1")
        assert [run.key.agent for run in reliability.runs] == ["bot"]

    def test_two(reliability):
        support_agent.run("1")
        support_agent.run("2")
        assert len(reliability.runs) == 2
"""


WITHOUT = [
    f"-pno:{name}"
    for name in ("randomly", "hypothesispytest", "anyio", "pytest_cov", "cacheprovider")
]
"""Plugins of others, which take a third of the time of a small suite."""


def passed(pytester: pytest.Pytester, *options: str) -> int:
    result = pytester.runpytest_subprocess(*WITHOUT, *options)
    outcomes = result.parseoutcomes()
    assert set(outcomes) == {"passed"}, result.stdout.str()
    return outcomes["passed"]


@pytest.mark.parametrize("where", ["nowhere", "conftest", "test"])
def test_fixture_records_wherever_the_provider_is_set(
    pytester: pytest.Pytester, where: str
) -> None:
    pytester.makepyfile(support_agent=SUPPORT_AGENT)
    if where == "conftest":
        pytester.makeconftest(PROVIDER)
    set_it = "trace.set_tracer_provider(TracerProvider())" if where == "test" else "pass"
    imports = "from opentelemetry import trace; from opentelemetry.sdk.trace import TracerProvider"
    pytester.makepyfile(TWO_TESTS.format(preparation=imports, within=set_it))

    assert passed(pytester) == 2


def test_provider_set_by_the_code_under_test_is_not_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        def test_own_provider(reliability):
            mine = TracerProvider()
            trace.set_tracer_provider(mine)
            assert trace.get_tracer_provider() is mine
        """
    )

    assert passed(pytester) == 1


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_spans_of_tests_are_recorded_for_a_report(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(support_agent=SUPPORT_AGENT)
    pytester.makepyfile(TWO_TESTS.format(preparation="", within="pass"))
    write_otlp(pytester.path / "spans.jsonl", runs("search"))  # of an earlier run of the tests

    assert passed(pytester, "--otel-reliability-record", "spans.jsonl", *workers) == 2
    recording = Recording()
    recording.read(pytester.path / "spans.jsonl")
    [key] = recording.close().agents()
    window = recording.window(key)

    assert window is not None
    assert (key.agent, window.runs) == ("bot", 3)


def test_snippet_of_the_readme_as_written(pytester: pytest.Pytester) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    [snippet] = re.findall(
        r"```python\n((?:(?!```).)*def test_support_agent.*?)```", readme, re.DOTALL
    )
    pytester.makepyfile(support_agent=SUPPORT_AGENT)
    pytester.makepyfile(snippet)

    assert passed(pytester) == 1
