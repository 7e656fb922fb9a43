"""Agents that misbehave in known ways, from their spans to report and gate."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.model.span import RawSpan
from otel_reliability.report import gate
from otel_reliability.report.target import parse
from otel_reliability.report.view import AgentView
from otel_reliability.testing import span
from tests.report.build import agent_of, printed, report, run_spans, runs


def random_paths(number: int, seed: int) -> list[str]:
    """Paths of 0 to 4 calls, each of any of four tools."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(["ask", "book", "find", "pay"], k=draw.randint(0, 4))) for _ in range(number)]


@pytest.mark.parametrize(("number", "seed"), [(20, 1), (40, 1), (60, 1), (100, 1), (100, 3)])
def test_a_random_agent_is_not_stable_and_flagged(tmp_path: Path, number: int, seed: int) -> None:
    spans = runs(*random_paths(number, seed))
    found = report(tmp_path, spans)
    (agent,) = found.agents

    assert agent.score is not None
    assert agent.score <= 66
    assert agent.tier is not Tier.STABLE
    assert agent.score_coverage == 60.0
    assert sum(cost.points or 0.0 for cost in agent.findings.costs) == pytest.approx(100 - agent.score)
    predictability = agent.metrics["step_predictability"]
    assert predictability.value is not None
    assert predictability.value <= 0.1
    assert agent.flags == ("random_steps",)
    assert "chooses its tools as if at random" in " ".join(printed(found).split())
    (result,) = gate.check(found, [parse("flag<=0")], 2)
    assert result.state is gate.TargetState.FAILED


@pytest.mark.parametrize("number", [20, 100])
def test_a_steady_agent_is_stable_and_predictable(tmp_path: Path, number: int) -> None:
    agent = agent_of(tmp_path, runs(*["find ask book pay"] * number))

    assert agent.score is not None
    assert agent.score >= 95
    assert agent.metrics["step_predictability"].value == pytest.approx(1.0)
    assert agent.flags == ()


@pytest.mark.parametrize(
    "paths",
    [["find ask"] * 19, ["find"] * 100, ["find find"] * 100],
    ids=["too few transitions", "one step a run", "one tool"],
)
def test_predictability_needs_steps_to_predict(tmp_path: Path, paths: list[str]) -> None:
    agent = agent_of(tmp_path, runs(*paths))

    assert agent.metrics["step_predictability"].value is None
    assert "random_steps" not in agent.flags


def chat(*tokens: int, limit: int | None = 128_000) -> list[RawSpan]:
    """Turns of one conversation, each with one model call of so many tokens."""
    facts = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "house-1", "gen_ai.context.window_size": limit}
    known = {name: value for name, value in facts.items() if value is not None}
    return [
        one
        for turn, number in enumerate(tokens, 1)
        for one in (
            *run_spans(turn, "find", session="chat-1"),
            span(
                9,
                1,
                trace=turn,
                name="chat",
                start=100.0 * turn,
                end=100.0 * turn + 0.5,
                attributes={**known, "gen_ai.usage.input_tokens": number},
            ),
        )
    ]


def caveats(agent: AgentView) -> str:
    return "; ".join(agent.caveats)


def test_a_chat_that_fills_its_context_is_flagged_with_its_turn(tmp_path: Path) -> None:
    """It grows by 15,000 tokens a turn, to 110,000 of 128,000."""
    agent = agent_of(tmp_path, chat(*range(20_000, 110_001, 15_000)))

    assert agent.metrics["context_growth"].value == pytest.approx(15 / 128)
    assert agent.metrics["context_turns_left"].value == 2.0
    assert agent.flags == ("context_growth",)
    assert (
        "the context window of session chat-1 is 86 % full at turn 7, 12 % more each turn: at this rate full at turn 9"
    ) in caveats(agent)


@pytest.mark.parametrize(
    "tokens",
    [[20_000] * 7, [90_000, 60_000, 30_000], [10_000, 20_000, 30_000], [50_000, 110_000]],
    ids=["steady", "shrinking", "far from full", "two turns"],
)
def test_a_chat_with_room_left_is_not_flagged(tmp_path: Path, tokens: list[int]) -> None:
    assert "context_growth" not in agent_of(tmp_path, chat(*tokens)).flags


def test_a_chat_at_its_limit_is_flagged_with_the_turn_that_reached_it(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, chat(100_000, 120_000, 130_000, 131_000))

    assert agent.metrics["context_turns_left"].value == 0.0
    assert "full at turn 3 (context_growth)" in caveats(agent)


def test_models_without_a_known_limit_are_named(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, chat(10_000, 20_000, limit=None))

    (gap,) = (gap for gap in agent.missing if gap.missing == "context limits")
    assert gap.remedy.startswith("not known of house-1: --set 'context_limits=house-1=128000'")


def test_growth_within_a_run_is_measured_over_its_model_calls(tmp_path: Path) -> None:
    spans = run_spans(1, "find find find")
    facts = {"gen_ai.operation.name": "chat", "gen_ai.context.window_size": 100_000}
    for at in range(4):
        start = 100.0 + at * 0.9
        tokens = {"gen_ai.usage.input_tokens": 10_000 + 20_000 * at}
        spans.append(
            span(20 + at, 1, trace=1, name="chat", start=start, end=start + 0.1, attributes={**facts, **tokens})
        )
    agent = agent_of(tmp_path, spans)

    assert agent.metrics["context_growth_per_step"].value == pytest.approx(0.2)
