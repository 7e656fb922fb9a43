from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from action import gate
from otel_reliability.model.run import Run
from otel_reliability.model.span import RawSpan
from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.report import json, markdown
from otel_reliability.report.build import report_of
from otel_reliability.report.view import Baseline, ComparedReading
from otel_reliability.testing import write_otlp
from otel_reliability.ui import report_file
from otel_reliability.ui.live import versions_compared
from tests.report.build import attempts, chat, comparison, loaded, printed, run_spans, runs

STEADY = runs(*["search reply"] * 12)
WILD = runs(*["search reply", "reply", "ask search", "ask"] * 3)


def compared(tmp_path: Path, before: list[RawSpan], after: list[RawSpan]) -> Baseline:
    return comparison(tmp_path, before, after)[1]


def changes(baseline: Baseline) -> dict[str, ComparedReading]:
    [agent] = baseline.agents
    return dict(agent.metrics)


def test_each_number_changes_for_better_or_worse_and_is_weighed_against_chance(
    tmp_path: Path,
) -> None:
    found = changes(compared(tmp_path, STEADY, WILD))

    assert found["path_entropy"].result == "worse"
    assert found["path_similarity"].result == "worse"
    assert found["window.runs"].result == "same"
    assert (found["path_entropy"].before.runs, found["path_entropy"].after.runs) == (12, 12)
    assert changes(compared(tmp_path, WILD, STEADY))["score"].result == "better"

    assert found["path_entropy"].more_than_chance is True
    assert all(
        change.more_than_chance is not True
        for change in changes(compared(tmp_path, WILD, WILD)).values()
    )


def test_evidence_that_one_side_lacks_is_neither_better_nor_worse(tmp_path: Path) -> None:
    judged = attempts("t", True, True)

    assert changes(compared(tmp_path, STEADY, judged))["pass_hat_k"].result == "gained"
    assert changes(compared(tmp_path, judged, STEADY))["pass_hat_k"].result == "lost"


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


def test_nothing_is_cut_at_80_columns(tmp_path: Path) -> None:
    """Also with names that are longer than the terminal is wide, and differ at the end only."""
    names = [f"a-{'very-' * 20}long-name-of-a-model-{n}" for n in (1, 2)]
    spans = [
        span
        for n in range(40)
        for span in [
            *run_spans(n + 1, ("lookup", "lookup verify")[n // 20], success=n < 20 or n % 2 == 0),
            chat(n + 1, gen_ai__response__model=names[n // 20]),
        ]
    ]
    recording = Recording(split_by="model")
    recording.read(write_otlp(tmp_path / "both.jsonl", spans))
    page = printed(report_of(recording.close(), split=True), width=80)

    assert "…" not in page
    assert max(map(len, page.splitlines())) <= 80
    assert all(name in "".join(page.split()) for name in names)
    assert "success_rate" in page.split()


def test_every_surface_begins_with_the_same_sentence(tmp_path: Path) -> None:
    """Two models that take different paths: `--by`, `--baseline`, the page, MCP, the Action."""
    old = [
        span
        for n in range(40)
        for span in [*run_spans(n + 1, "lookup"), chat(n + 1, gen_ai__response__model="a")]
    ]
    new = [
        span
        for n in range(40, 80)
        for span in [
            *run_spans(n + 1, "lookup verify recheck"),
            chat(n + 1, gen_ai__response__model="b"),
        ]
    ]
    found, baseline = comparison(tmp_path, old, new)
    [each] = baseline.agents
    runs: list[Run] = []
    recording = Recording(final=runs.extend, split_by="model")
    recording.read(write_otlp(tmp_path / "both.jsonl", [*old, *new]))
    by_model = report_of(recording.close(), split=True).baseline
    assert by_model is not None
    whole = [replace(run, key=each.key) for run in runs]
    by_version = versions_compared(each.key, whole, "model a", "model b", REPORT_SETTINGS)

    assert each.sentence.startswith(
        "differs: recheck is used in 0 % → 100 % of the runs; verify is used in 0 % → 100 % of the "
        "runs; tool calls 1 → 3"
    )
    assert [one.sentence for one in by_model.agents] == [each.sentence]
    assert [group.name for group in by_model.agents[0].groups] == ["a", "b"]
    assert by_version.sentence == each.sentence
    assert [group.name for group in by_version.groups] == ["model a", "model b"]
    assert each.sentence in " ".join(printed(found).split())
    assert each.sentence in markdown.render(found).replace("\\", "")
    assert each.sentence in report_file.render(found)
    document = loaded(json.render(found))["baseline"]
    assert document["agents"][0]["sentence"] == each.sentence
    lines = list(gate._changed(document))
    assert lines[0].replace("\\", "") == f"- support, since the base branch: {each.sentence}"


def test_no_difference_is_said_with_its_size(tmp_path: Path) -> None:
    found, baseline = comparison(tmp_path, STEADY, STEADY)

    assert baseline.agents[0].differs is False
    assert "no difference that these runs could show" in " ".join(printed(found).split())
    assert "a share would have to differ by 59 points" in " ".join(printed(found).split())
