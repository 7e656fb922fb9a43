"""Judgements that come before their run wait for it, up to a limit."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.assembly import memory
from otel_reliability.assembly.evaluations import WAIT
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import LimitSettings, Settings
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.span import AgentSpan, CompressionFacts, Evaluation, Kind, Notes, SpanId
from otel_reliability.testing import agent, agent_span, other, span_id, tool, trace_id
from tests.assembly.rebuilding import Watched, rebuilt, run_of, used

GOOD = Evaluation("success", 1.0, None, 1)
OF_A_TRACE = [replace(GOOD, trace_id=trace_id(number)) for number in (1, 2)]
OF_A_RESPONSE = [replace(GOOD, response_id=f"response-{number}") for number in (1, 2)]


@pytest.mark.parametrize("told", [OF_A_TRACE, OF_A_RESPONSE, [OF_A_TRACE[0], OF_A_RESPONSE[1]]])
def test_of_one_beyond_the_limit_nothing_is_left(told: list[Evaluation]) -> None:
    assembler = Assembler(Settings(limits=LimitSettings(evaluations=1)))
    assembler.evaluate(told, 0.0)
    assembler.tick(1.0)
    assert used(assembler)["waiting_evaluations"] == 1
    assert assembler.accounts.losses == {("evaluation", "limit"): 1}

    assembler.tick(WAIT + 1.0)
    assert used(assembler)["waiting_evaluations"] == 0
    assert assembler.accounts.losses["evaluation", "no_run"] == 1


def test_one_that_was_refused_is_taken_once_there_is_room() -> None:
    assembler = Assembler(Settings(limits=LimitSettings(evaluations=1)))
    assembler.evaluate(OF_A_TRACE, 0.0)
    assembler.add_all((agent(1, trace=2),), 0.0)
    assembler.evaluate(OF_A_TRACE[1:], 0.0)
    (told,) = assembler.tick(3.0)
    assert told.run.evaluations == (OF_A_TRACE[1],)


@pytest.mark.parametrize(("reward", "outcome"), [(1.0, Outcome.SUCCESS), (0.9, Outcome.FAILURE)])
def test_a_partial_reward_is_a_failure(reward: float, outcome: Outcome) -> None:
    assert run_of(agent(1, notes=Notes(reward=reward))).outcome is outcome


@pytest.mark.parametrize(
    ("label", "outcome"),
    [
        ("Passed", Outcome.SUCCESS),
        (" resolved", Outcome.SUCCESS),
        ("unresolved", Outcome.FAILURE),
        ("0", Outcome.FAILURE),
        ("error", Outcome.COMPLETED),  # the evaluator failed, not the run
        ("excellent", Outcome.COMPLETED),
    ],
)
def test_a_label_decides_by_the_words_of_every_outcome(label: str, outcome: Outcome) -> None:
    judged = replace(GOOD, score=None, label=label, trace_id=trace_id(1))
    assert run_of(agent(1, evaluations=(judged,))).outcome is outcome


# --- Evaluations of final runs --------------------------------------------------------------------

FINAL = replace(GOOD, name="quality", score=0.75, time_ns=5, trace_id=trace_id(1))


def final(traces: int) -> Watched:
    """Return an assembler with final runs: one agent in each trace, and one nested in it."""
    assembler = Watched()
    for trace in range(1, traces + 1):
        assembler.add(
            agent(1, trace=trace), agent(2, 1, "nested", trace=trace), tool(3, 2, trace=trace)
        )
        assembler.wait(100)
    return assembler


def test_an_evaluation_makes_a_new_version_of_the_top_level_run() -> None:
    assembler = final(1)
    for one in (FINAL, FINAL, replace(FINAL, score=0.5, time_ns=6)):
        assembler.add(one)
    assembler.wait(1)

    assert [(event.run.nested, event.run.evaluations[0].score) for event in assembler.events] == [
        (False, 0.75),
        (False, 0.5),
    ]
    assert assembler.events[1].previous == assembler.events[0].run


AGENTS = (other(9), agent(1, 9, "first"), agent(2, 9, "second"))
LOOSE = (other(9), tool(1, 9, "first"), tool(3, 2, "second", start=50.0))


@pytest.mark.parametrize(
    ("told", "about", "after"),
    [(AGENTS, None, 0), (AGENTS, None, 150), (AGENTS, span_id(9), 0), (LOOSE, None, 0)],
    ids=["agents of a trace", "when one is final", "agents below a span", "work without agents"],
)
def test_one_that_may_be_about_two_units_is_about_none_when_one_is_final(
    told: tuple[AgentSpan, ...], about: SpanId | None, after: int
) -> None:
    """As where both arrive at once: what stays open does not get it for being the last."""
    judged = replace(FINAL, span_id=about)
    later = [tool(number, 2, start=50.0) for number in range(10, 300)]
    assembler = Watched()
    assembler.add(*told)
    found: list[Run] = []
    for turn, one in enumerate(later):
        assembler.add(*([judged] if turn == after else []), one)
        found += [run for _, run in assembler.wait(1)]
    found += [run for _, run in assembler.end()]

    assert {run.evaluations for run in found} == {()}
    assert {run.evaluations for run in rebuilt(*told, *later, judged)} == {()}
    assert {run.run_id for run in found} == {run.run_id for run in rebuilt(*told, *later)}
    assert assembler.assembler.accounts.losses["evaluation", "no_run"] == 1


def test_the_first_final_runs_are_dropped_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_RUNS", 2)
    assembler = final(2)
    for trace in (1, 2):
        assembler.add(replace(FINAL, trace_id=trace_id(trace)))

    assert [run.trace_id for _, run in assembler.wait(1)] == [trace_id(2)]
    assert assembler.assembler.accounts.losses["evaluation", "late"] == 1


def test_notes_of_compression_count_with_and_without_evaluation() -> None:
    """Notes on a compression of the context are of its run, whether or not an evaluation arrives
    apart.
    """
    noted = replace(
        agent_span(Kind.COMPRESSION, CompressionFacts(), 2, 1), notes=Notes(task_id="refund")
    )
    evaluation = Evaluation("tone", 1.0, None, 1, trace_id(1))
    for apart in ((), (evaluation,)):
        assert run_of(noted, agent(1), *apart).task_id == "refund"
