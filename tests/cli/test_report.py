from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import attempts, runs
from tests.report.schema import faults

SPANS = [*attempts("refund", True, False, True), *runs("a", "b", first=4, agent="other")]


@pytest.fixture(name="path")
def path_of(tmp_path: Path) -> Path:
    return write_otlp(tmp_path / "spans.jsonl", SPANS)


def test_a_page_in_a_pipe_is_plain_and_has_no_trailing_space(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = call(capsys, "report", path).out

    assert "\x1b" not in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_colour_can_be_forced_and_refused(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = call(capsys, "report", path, "--details").out
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b[31m" in coloured or "\x1b[32m" in coloured
    assert "\x1b[31m" not in call(capsys, "report", path, "--details").out


def test_an_agent_can_be_chosen(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(
        call(capsys, "report", path, "--agent", "support", "--format", "json").out
    )
    done = call(capsys, "report", path, "--agent", "suport")

    assert [agent["agent"] for agent in document["agents"]] == ["support"]
    assert (done.code, done.err) == (
        2,
        (
            "otel-reliability: --agent: 'suport' is not an agent with runs here; the nearest "
            "is support.\n"
        ),
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), [2, 3]),
        (("--window", "2"), [2, 2]),
        (("--window", "150s"), [2, 2]),
        (("--since", "2023-11-14T22:17:00+00:00"), [2, 1]),
        (("--since", "2023-11-14 22:20"), [2]),
        (("--since", "1h"), []),
    ],
)
def test_runs_can_be_chosen(
    path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], expected: list[int]
) -> None:
    document = json.loads(call(capsys, "report", path, *options, "--format", "json").out)

    assert [agent["runs"] for agent in document["agents"]] == expected


def test_a_score_needs_as_many_runs_as_were_asked_for(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def scored(*options: str) -> list[bool]:
        agents = json.loads(call(capsys, "report", path, *options, "--format", "json").out)[
            "agents"
        ]
        return [agent["score"] is not None for agent in agents]

    assert scored() == [True, True]
    assert scored("--min-runs", "3") == [False, True]


def test_settings_come_from_file_environment_and_command_line(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def notes(*options: object) -> list[str]:
        agents = json.loads(call(capsys, "report", path, *options, "--format", "json").out)[
            "agents"
        ]
        return [agent["score_note"].partition(" that")[0] for agent in agents]

    file = tmp_path / "settings.toml"
    file.write_text("[metrics]\nmin_runs = 20\n", encoding="utf-8")

    assert notes("--config", file) == ["2 of the 20 runs", "3 of the 20 runs"]
    monkeypatch.setenv("OTEL_RELIABILITY_METRICS_MIN_RUNS", "30")
    assert notes("--config", file) == ["2 of the 30 runs", "3 of the 30 runs"]
    assert notes("--config", file, "--set", "metrics.min_runs=40") == [
        "2 of the 40 runs",
        "3 of the 40 runs",
    ]
    assert notes("--set", "metrics.min_runs=40", "--min-runs", "50") == [
        "2 of the 50 runs",
        "3 of the 50 runs",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--window", "ten"),
            (
                "--window: 'ten' is not a number of runs from 1, or a duration; write it "
                "like 100, or like 24h."
            ),
        ),
        (("--window", "0"), "--window: '0' is not a number of runs from 1, or a duration"),
        (
            ("--since", "soon"),
            (
                "--since: 'soon' is not a time, or a duration; write it like "
                "2026-01-31T10:00Z, or like 2h."
            ),
        ),
        (
            ("--min-runs", "few"),
            "Invalid value for '--min-runs': 'few' is not a valid integer range.",
        ),
        (("--set", "metrics.minruns=3"), "metrics.minruns"),
        (
            ("--set", "min_runs"),
            "--set: 'min_runs' is not a setting; write it like metrics.min_runs=10.",
        ),
        (
            ("--set", "metrics=1", "--set", "metrics.min_runs=1"),
            "--set: 'metrics.min_runs' is not a setting of its own",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_four_parts(
    path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    done = call(capsys, "report", path, *options)

    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.ini", "", "'a.ini' is not a .yaml, .toml or .json file; give it one of these endings."),
        ("a.json", "{", "'a.json' is not what its ending says (line 1); correct it there"),
        ("a.toml", "[", "'a.toml' is not what its ending says ("),
        ("a.yaml", "a: [", "'a.yaml' is not what its ending says (line 1, column 5)"),
        ("a.json", '{"metric": {}}', "metric"),
    ],
)
def test_a_settings_file_that_cannot_be_read_is_told(
    path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    message: str,
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = call(capsys, "report", path, "--config", tmp_path / name)

    assert done.code == 2
    assert message in done.err


def test_two_recordings_are_compared(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_otlp(tmp_path / "old.jsonl", runs("a", "a", agent="other"))
    seen = call(capsys, "report", "--baseline", old, path, "--since", "2023-11-14T22:16:40Z").out
    document = json.loads(call(capsys, "report", "--baseline", old, path, "--format", "json").out)
    [agent] = document["baseline"]["agents"]

    assert "🟢 STABLE 100/100  →  🟠 UNSTABLE 42/100" in seen
    assert "Only now: support." in seen
    assert agent["metrics"]["path_entropy"]["change"] == 1.0
    assert (
        "| `path_entropy` | 0.000 | 2 |"
        in call(capsys, "report", "--baseline", old, path, "--format", "markdown").out
    )


def test_every_format_tells_the_same_sentence_of_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [*runs(*["look reply"] * 80), *runs(*["look ask ask wait reply"] * 40, first=81)]
    path = write_otlp(tmp_path / "changed.jsonl", spans)
    [told] = json.loads(call(capsys, "change", path, "--format", "json").out)["agents"]
    document = json.loads(call(capsys, "report", path, "--format", "json", "--no-intervals").out)
    page = " ".join(call(capsys, "report", path, "--no-intervals").out.split())
    text = call(capsys, "report", path, "--format", "markdown", "--no-intervals").out.replace(
        "\\", ""
    )

    assert told["verdict"] == "changed"
    assert told["sentence"].startswith("changed about observation ")
    assert list(faults(document)) == []
    assert {
        name: document["agents"][0]["change"][name] for name in ("verdict", "sentence", "alarms")
    } == {name: told[name] for name in ("verdict", "sentence", "alarms")}
    assert (
        f"● Behaviour: {told['sentence']} since then: report --agent support --since 2023-" in page
    )
    assert (
        f"- ● Behaviour: {told['sentence']}\n- since then: report --agent support --since" in text
    )
    assert "score over time ████" in page


def test_where_nothing_can_be_said_of_changes_it_is_said_why(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        "? Behaviour: no result: 3 of the 60 observations that a baseline takes"
        in call(capsys, "report", path).out
    )


@pytest.mark.parametrize("content", ["", "\n", '{"resourceSpans": []}\n'])
@pytest.mark.parametrize("command", ["report", "inspect", "change"])
def test_where_there_is_nothing_to_read_it_says_so_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, content: str
) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    done = call(capsys, command, path)

    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"otel-reliability: nothing was read: no span, log record or session in {path}.\n"
    )


def test_the_missing_file_of_the_demo_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "gate", "demo-spans.jsonl", "--require", "score>=80")

    assert done.code == 2
    assert "the demo writes it; run otel-reliability demo --once in the same folder" in done.err


def test_details_are_shown_where_they_are_asked_for(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brief = call(capsys, "report", path).out
    whole = call(capsys, "report", path, "--details").out

    assert "Missing data, and how to add it" in whole
    assert "Missing data, and how to add it" not in brief
    assert "otel-reliability report --details" in " ".join(brief.split())
