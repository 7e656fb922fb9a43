from __future__ import annotations

from pathlib import Path

from otel_reliability.model.span import RawSpan
from otel_reliability.report.view import Baseline, Compared
from tests.report.build import attempts, comparison, printed, runs

STEADY = runs(*["search reply"] * 12)
WILD = runs(*["search reply", "reply", "ask search", "ask"] * 3)


def compared(tmp_path: Path, before: list[RawSpan], after: list[RawSpan]) -> Baseline:
    return comparison(tmp_path, before, after)[1]


def changes(baseline: Baseline) -> dict[str, Compared]:
    [agent] = baseline.agents
    return dict(agent.metrics)


def test_each_number_changes_for_better_or_worse_and_is_weighed_against_chance(
    tmp_path: Path,
) -> None:
    found = changes(compared(tmp_path, STEADY, WILD))

    assert found["path_entropy"].verdict == "worse"
    assert found["path_similarity"].verdict == "worse"
    assert found["window.runs"].verdict == "same"
    assert (found["path_entropy"].before.runs, found["path_entropy"].after.runs) == (12, 12)
    assert changes(compared(tmp_path, WILD, STEADY))["score"].verdict == "better"

    assert found["path_entropy"].more_than_chance is True
    assert all(
        change.more_than_chance is not True
        for change in changes(compared(tmp_path, WILD, WILD)).values()
    )


def test_evidence_that_one_side_lacks_is_neither_better_nor_worse(tmp_path: Path) -> None:
    judged = attempts("t", True, True)

    assert changes(compared(tmp_path, STEADY, judged))["pass_hat_k"].verdict == "gained"
    assert changes(compared(tmp_path, judged, STEADY))["pass_hat_k"].verdict == "lost"


def test_agents_of_one_side_are_named(tmp_path: Path) -> None:
    before = [*STEADY, *runs("a", first=50, agent="old")]
    after = [*STEADY, *runs("a", first=50, agent="new")]
    found, baseline = comparison(tmp_path, before, after)

    assert [key.agent for key in baseline.only_before] == ["old"]
    assert "Only before: old." in printed(found)
    assert "Only now: new." in printed(found)
    assert "No agent is in both recordings" in printed(
        comparison(tmp_path, STEADY, runs("a", agent="new"))[0]
    )


def test_the_page_shows_both_badges_and_what_moved(tmp_path: Path) -> None:
    page = printed(comparison(tmp_path, STEADY, WILD)[0])

    assert "🟢 STABLE 100/100  →  🟡 VARIABLE 67/100" in page
    assert "+0.558 worse, more than chance" in " ".join(page.split())
    assert "numbers the same" in page
