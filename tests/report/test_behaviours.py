"""Agents that misbehave in known ways, from their spans to report and gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_reliability.model.span import RawSpan
from otel_reliability.report.view import AgentView
from tests.report.build import agent_of, chat, run_spans, runs


@pytest.mark.parametrize(
    "paths",
    [["find ask"] * 19, ["find"] * 100, ["find find"] * 100],
    ids=["too few transitions", "one step a run", "one tool"],
)
def test_predictability_needs_steps_to_predict(tmp_path: Path, paths: list[str]) -> None:
    agent = agent_of(tmp_path, runs(*paths))

    assert agent.metrics["step_predictability"].value is None
    assert "random_steps" not in agent.flags


def talk(*tokens: int) -> list[RawSpan]:
    """Turns of one conversation, each with one model call of so many tokens."""
    calls = [
        chat(turn, number, gen_ai__context__window_size=128_000)
        for turn, number in enumerate(tokens, 1)
    ]
    return [*runs(*["find"] * len(tokens), session="chat-1"), *calls]


def caveats(agent: AgentView) -> str:
    return "; ".join(agent.caveats)


def test_a_chat_that_fills_its_context_is_flagged_with_its_turn(tmp_path: Path) -> None:
    """It grows by 15,000 tokens a turn, to 110,000 of 128,000."""
    agent = agent_of(tmp_path, talk(*range(20_000, 110_001, 15_000)))

    assert agent.metrics["context_growth"].value == pytest.approx(15 / 128)
    assert agent.metrics["context_turns_left"].value == 2.0
    assert agent.flags == ("context_growth",)
    assert (
        "the context window of session chat-1 is 86 % full at turn 7, 12 % more each "
        "turn: at this rate full at turn 9"
    ) in caveats(agent)


@pytest.mark.parametrize(
    "tokens",
    [[20_000] * 7, [90_000, 60_000, 30_000], [10_000, 20_000, 30_000], [50_000, 110_000]],
    ids=["steady", "shrinking", "far from full", "two turns"],
)
def test_a_chat_with_room_left_is_not_flagged(tmp_path: Path, tokens: list[int]) -> None:
    assert "context_growth" not in agent_of(tmp_path, talk(*tokens)).flags


def test_a_chat_at_its_limit_is_flagged_with_the_turn_that_reached_it(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, talk(100_000, 120_000, 130_000, 131_000))

    assert agent.metrics["context_turns_left"].value == 0.0
    assert "full at turn 3 (context_growth)" in caveats(agent)


def test_growth_within_a_run_is_measured_over_its_model_calls(tmp_path: Path) -> None:
    spans = run_spans(1, "find find find")
    for at in range(4):
        spans.append(
            chat(1, 10_000 + 20_000 * at, after=0.9 * at, gen_ai__context__window_size=100_000)
        )
    agent = agent_of(tmp_path, spans)

    assert agent.metrics["context_growth_per_step"].value == pytest.approx(0.2)
