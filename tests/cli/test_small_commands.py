from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_reliability.cli.explain import CHANGE_NAMES, OF_TARGETS
from otel_reliability.dashboards import FILES
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import runs


@pytest.fixture(name="path")
def path_of(tmp_path: Path) -> Path:
    """A stable agent, and one with a single run."""
    return write_otlp(tmp_path / "spans.jsonl", [*runs("a", "a"), *runs("a", first=3, agent="new")])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "385 runs give a pass rate to within ±5 points at 95 % confidence."),
        (
            ("--half-width", "0.098"),
            "100 runs give a pass rate to within ±9.8 points at 95 % confidence.",
        ),
        (
            ("--half-width", ".05", "--confidence", "99"),
            "664 runs give a pass rate to within ±5 points at 99 % confidence.",
        ),
        (("--runs", "5"), "5 runs give a pass rate to within ±43.8 points at 95 % confidence."),
        (("--runs", "100"), "100 runs give a pass rate to within ±9.8 points at 95 % confidence."),
    ],
)
def test_runs_are_recommended(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], line: str
) -> None:
    assert call(capsys, "sample-size", *options).out == f"{line}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--half-width", "0"),
            "half_width: '0' is not a share above 0 and up to 1; write 5 points as 0.05.",
        ),
        (("--half-width", "wide"), "half_width: 'wide' is not a share"),
        (("--confidence", "80"), "confidence: 80 is not one of 90, 95 and 99"),
        (("--runs", "0"), "Invalid value for '--runs': 0 is not in the range x>=1"),
    ],
)
def test_recommendations_that_cannot_be_are_refused(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    done = call(capsys, "sample-size", *options)

    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("name", [*ALL_SPECS, *OF_TARGETS, *CHANGE_NAMES])
def test_every_number_is_explained(capsys: pytest.CaptureFixture[str], name: str) -> None:
    done = call(capsys, "explain", name)

    assert done.code == 0
    assert all(word in done.out for word in ("Range", "Needs", "Source", "In a gate"))


def test_an_explanation_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    by_name, by_metric = (
        call(capsys, "explain", name).out
        for name in ("tool_variance", "agent.reliability.tool_variance")
    )

    assert by_name == by_metric
    for text in (
        "H(sets of tools) / log2 n",
        "up to 20 of the points assessed",
        "take away",
        "agent.reliability.tool_variance, unit",
    ):
        assert text in " ".join(by_name.split())


def test_a_number_that_is_not_there_shows_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "explain", "path_entropie")

    assert done.code == 2
    assert "'path_entropie' names no metric. Did you mean path_entropy" in done.err


def test_a_badge_is_text_picture_or_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    badge = ("report", path, "--agent", "support", "--format")

    assert (
        call(capsys, *badge, "badge").out == "🟢 STABLE 100/100, from 60 of 100 points assessed\n"
    )
    assert call(capsys, *badge, "badge", "--trust", "94").out.startswith(
        "✅ SECURED 94/100 | 🟢 STABLE 100/100, from 60"
    )
    assert json.loads(call(capsys, *badge, "badge-json").out)["label"] == "support"
    assert "support: 🟢 STABLE 100/100" in call(capsys, *badge, "badge-svg").out


def test_of_several_agents_text_names_all_and_a_picture_wants_one(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "report", path, "--format", "badge-svg")

    assert call(capsys, "report", path, "--format", "badge").out.splitlines() == [
        "new: no score (1 of the 2 runs that a score needs)",
        "support: 🟢 STABLE 100/100, from 60 of 100 points assessed",
    ]
    assert done.code == 2
    assert "choose one of new, support" in done.err


def test_without_a_score_there_is_no_badge(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    badge = ("--format", "badge")
    lone = call(capsys, "report", path, "--agent", "new", *badge)
    nobody = call(capsys, "report", empty, *badge)

    assert (lone.code, lone.out) == (3, "")
    assert "no score, so no badge: 1 of the 2 runs that a score needs." in lone.err
    assert nobody.code == 3
    assert "there are no agent runs" in nobody.err


def test_dashboards_are_written_and_nothing_is_overwritten_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / path for path in FILES.values()]
    theirs = tmp_path / FILES["rules.yaml"]
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    refused = call(capsys, "dashboards", tmp_path)

    assert (refused.code, refused.out) == (2, "")
    assert "--force" in refused.err
    assert [path for path in paths if path.exists()] == [theirs]
    assert theirs.read_text() == "theirs"

    forced = call(capsys, "dashboards", tmp_path, "--force", "--datasource", "mimir")
    assert (forced.code, forced.out.split()) == (0, [str(path) for path in paths])
    assert all(path.is_file() for path in paths)
    assert 'datasourceUid: "mimir"' in (tmp_path / FILES["alerting.yaml"]).read_text(
        encoding="utf-8"
    )
