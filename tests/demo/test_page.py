"""What is said of a fleet, whatever it is like."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console, RenderableType

from otel_reliability.config import SIGNALS
from otel_reliability.demo import page
from otel_reliability.demo.agreement import Agreement
from otel_reliability.demo.watch import CHANGED, IN_WORDS, Seen
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.tiers import tier_of


def seen(
    name: str, score: float | None, flags: tuple[str, ...] = (), changes: tuple[str, ...] = (), **costs: float
) -> Seen:
    """An agent."""
    return Seen(name, 20, score, None if score is None else tier_of(score), "too few", costs, flags, changes)


def text(shown: RenderableType) -> str:
    """As it stands on a terminal without colours."""
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_least_reliable_of_a_stable_fleet_is_not_called_unreliable() -> None:
    """It is the least reliable, and what costs it most is said."""
    said = text(page.verdict([seen("desk", 90, path_entropy=9.0, tool_variance=1.0)], []))

    assert said.startswith(
        "desk is the least reliable  🟢 STABLE 90/100\n  It hardly ever does the same work in the same order."
    )


def test_an_agent_that_costs_nothing_is_accused_of_nothing() -> None:
    """A score of 100 has no reason."""
    assert (
        text(page.verdict([seen("desk", 100, path_entropy=0.2)], [])).strip()
        == "desk is the least reliable  🟢 STABLE 100/100"
    )


def test_without_a_score_nobody_is_judged() -> None:
    """Nor is anybody called the worst."""
    assert "No agent has enough runs" in text(page.verdict([seen("desk", None)], []))
    assert "Too few runs" in text(page.so_far([seen("desk", None)], 1))
    assert "too few" in text(page.fleet([seen("desk", None)]))


def test_whoever_changed_or_is_flagged_is_worth_a_look() -> None:
    """Whatever the score."""
    fleet = [
        seen("worst", 30, tool_variance=20.0),
        seen("new", 95, changes=("path",)),
        seen("full", 85, ("token_pressure_high",)),
    ]
    said = text(page.verdict(fleet, [{"title": "Tool variance", "points": 20.0, "sentence": "Because."}]))

    assert "worst is unreliable  🔴 CRITICAL 30/100" in said
    assert "−20.0  Tool variance  Because." in said
    assert "it has changed: the steps it takes" in said
    assert "🟢 STABLE ⚠" in said


def test_doors_that_disagree_are_named_with_both_numbers() -> None:
    """And by which door each came."""
    said = text(page.agreed(Agreement(2, [("score{a}", 1.0, 2.0)]), Agreement(2, [("runs{b}", None, 3.0)])))

    assert "score{a}: /metrics 1.0, recorded 2.0" in said
    assert "runs{b}: in the process None, recorded 3.0" in said


def test_there_are_words_for_all_that_can_cost_points_and_for_all_that_can_change() -> None:
    """None is left out when one is added."""
    assert IN_WORDS.keys() == PENALTIES.keys()
    assert CHANGED.keys() == set(SIGNALS)


def test_while_it_goes_on_the_verdict_stands_above_the_fleet(tmp_path: Path) -> None:
    """A small terminal shows the last lines only: who is unreliable and why is among them."""
    addresses = {"pages": "127.0.0.1:1", "metrics": "127.0.0.1:2", "http": "127.0.0.1:3"}
    worst = seen("worst", 30, tool_variance=20.0)
    first, second, *_, last = text(page.live([worst, seen("desk", 90)], 1_234, addresses)).splitlines()
    steps = text(page.next_steps(addresses, tmp_path / "spans", worst))

    assert first.startswith("worst is unreliable")
    assert second.strip() == "It takes other tools each time it does the same work."
    assert "1,234 runs so far" in last
    assert all(address in steps for address in addresses.values())
    assert "explain tool_variance" in steps
    assert "://" not in text(page.next_steps(None, tmp_path / "spans", worst))
