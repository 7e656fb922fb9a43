from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from otel_reliability.config import LimitSettings, WindowSettings
from otel_reliability.model.span import RawSpan
from otel_reliability.report.caveats import caveats_of
from otel_reliability.report.recording import REPORT_SETTINGS, for_report
from tests.report.build import card, report, runs


def sampled(number: int, state: str) -> list[RawSpan]:
    """A run whose root was sampled at the rate that its trace state tells."""
    root, *rest = runs("a", first=number)
    return [root._replace(trace_state=state), *rest]


def test_a_plain_recording_needs_no_caveat(tmp_path: Path) -> None:
    """Nothing is said where nothing limits the numbers."""
    assert caveats_of(card(tmp_path, runs("a", "a"))) == []


def test_a_sample_is_called_one(tmp_path: Path) -> None:
    """It stands for more runs than there are; at mixed rates it is worth fewer."""
    half, whole = "ot=th:8", ""

    assert caveats_of(card(tmp_path, [*sampled(1, half), *sampled(2, half)])) == [
        "the runs are a sample and stand for about 4; the numbers are of the runs as they are"
    ]
    mixed = [*sampled(1, "ot=th:f"), *sampled(2, whole), *sampled(3, whole)]
    assert caveats_of(card(tmp_path, mixed))[0] == (
        "the runs were sampled at different rates: they are worth 1 equally sampled ones"
    )


def test_runs_that_were_left_out_are_counted(tmp_path: Path) -> None:
    """Because of a window, or of the ceiling of a report."""
    few = for_report(REPORT_SETTINGS, WindowSettings(last=2))
    ceiling = replace(REPORT_SETTINGS, limits=LimitSettings(rows=2))

    for settings in (few, ceiling):
        assert caveats_of(card(tmp_path, runs("a", "a", "a"), settings)) == [
            "1 older run left out: the report looks at the newest 2"
        ]


def test_a_warning_of_several_numbers_is_said_once(tmp_path: Path) -> None:
    """Arguments that are unknown limit what is said of retries and of loops."""
    bare = [each._replace(attributes=_without_arguments(each)) for each in runs("a a", "a")]

    assert caveats_of(card(tmp_path, bare)) == [
        (
            "arguments unknown in 2 of 2 runs: their calls are matched by tool alone (retry_explosion, retry_explosion_share, "
            "longest_retry_chain, retries_per_run, retry_tokens_per_run, retry_seconds_per_run, loops, loop_share)"
        )
    ]


def _without_arguments(span: RawSpan) -> dict[str, object]:
    return {key: value for key, value in span.attributes.items() if "arguments" not in key}


def test_a_ceiling_that_was_hit_is_a_note(tmp_path: Path) -> None:
    """Of agents, and of tasks."""
    crowded = for_report(replace(REPORT_SETTINGS, limits=LimitSettings(agents=1, tasks=1)))
    spans = [*runs("a", task="one"), *runs("a", first=2, task="two"), *runs("a", first=3, agent="other")]

    assert report(tmp_path, spans, crowded).notes == [
        "the ceiling of 1 agents was hit 1 time",
        "the ceiling of 1 tasks was hit 1 time",
    ]
