from __future__ import annotations

from pathlib import Path

from otel_reliability.model.span import RawSpan
from otel_reliability.report.why import reasons_of
from otel_reliability.testing import span
from tests.report.build import card, runs


def told(tmp_path: Path, spans: list[RawSpan]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Title → sentence and details."""
    return {reason.title: (reason.sentence, reason.details) for reason in reasons_of(card(tmp_path, spans))}


def test_nothing_is_told_of_what_costs_nothing(tmp_path: Path) -> None:
    """A stable agent needs no reasons."""
    assert told(tmp_path, runs("a", "a")) == {}


def test_reasons_stand_by_what_they_cost(tmp_path: Path) -> None:
    """The dearest first; what costs no points comes after."""
    spans = [*runs("f f f f", failed="f"), *runs("a b", "a", "a b", "a b", first=2)]
    points = [reason.points for reason in reasons_of(card(tmp_path, spans))]

    assert points == sorted(points, key=lambda cost: (cost is None, -(cost or 0.0)))
    assert points[0] == 25.0
    assert points[-1] is None


def test_without_rare_tools_the_unevenly_used_are_named(tmp_path: Path) -> None:
    """Those that about half of the runs use explain most."""
    sentence, details = told(tmp_path, runs("a b", "a", "a c", "a b c", "a"))["Tool variance"]

    assert sentence == "No tool is rare; the 3 tools are combined differently from run to run."
    assert details == ("b: 40 %, 2 of 5 runs", "c: 40 %, 2 of 5 runs")


def test_long_lists_are_cut_and_counted(tmp_path: Path) -> None:
    """Three details, and how many more there are."""
    spans = [each for task in range(6) for each in runs("a", "b", first=2 * task + 1, task=f"t{task}")]

    assert told(tmp_path, spans)["Path entropy"][1][-1] == "and 3 more tasks"


def test_retries_are_told_with_what_they_cost(tmp_path: Path) -> None:
    """Time, and the tokens of the model calls that asked for them."""
    call = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 1200, "gen_ai.usage.output_tokens": 34}
    asking = span(9, 1, start=100.0, end=100.6, attributes=call)
    [detail] = told(tmp_path, [*runs("f f f f", "a", failed="f"), asking])["Retry explosion"][1]

    assert detail == "00000000000000000000000000000001  f retried 3×, 1.5 s, 1,234 tokens"


def test_odd_runs_are_told_with_their_task(tmp_path: Path) -> None:
    """The one that took another way, and the one that did nothing."""
    _, details = told(tmp_path, runs("a b", "a b", "a b", "x y z", "", task="t"))["Runs unlike the others"]

    assert details[:2] == (
        "00000000000000000000000000000004  1.000  task t, 3 steps",
        "00000000000000000000000000000005  1.000  task t, no tool called",
    )


def test_tasks_that_end_in_different_changes_are_told_without_arguments(tmp_path: Path) -> None:
    """Calls of one tool with different arguments are counted, not shown."""
    paid = runs("pay", task="t")
    paid += [_with(each, '{"cents": 1250}') for each in runs("pay", first=2, task="t")]
    spans = [*paid, *runs("look", first=3, task="t", success=False)]

    assert told(tmp_path, spans)["Changes to the world"][1] == (
        "task t: 100 % apart: pay: 2 different calls, each by 1 of 3; 1 of 1 failed",
    )


def _with(each: RawSpan, arguments: str) -> RawSpan:
    return each._replace(attributes={**each.attributes, "gen_ai.tool.call.arguments": arguments})
