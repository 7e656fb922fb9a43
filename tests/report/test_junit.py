from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

from otel_reliability.metrics import ALL_SPECS
from otel_reliability.model.span import RawSpan
from otel_reliability.report import gate, junit
from otel_reliability.report.target import parse
from tests.report.build import attempts, report, runs


def parsed(text: str) -> Element:
    return fromstring(text.partition("\n")[2])


def suite_of(tmp_path: Path, spans: list[RawSpan]) -> Element:
    [suite] = parsed(junit.render(report(tmp_path, spans)))
    return suite


def cases_with(suite: Element, tag: str) -> dict[str, str]:
    """Test name → message, of the tests that failed, or were skipped."""
    return {
        case.get("name", ""): found.get("message", "")
        for case in suite
        if (found := case.find(tag)) is not None
    }


def test_every_number_is_a_test_and_missing_evidence_is_skipped(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, runs("a", "a", task="refund"))

    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == (
        "support (shop · test)",
        str(len(ALL_SPECS)),
        "0",
    )
    assert (
        cases_with(suite, "skipped")["brier_score"]
        == "not enough data: it needs 1 run with a confidence and a known outcome"
    )
    assert suite.get("skipped") == str(len(cases_with(suite, "skipped")))
    texts = {case.get("name"): case.findtext("system-out") for case in suite}
    assert (texts["path_entropy"], texts["tier"]) == ("0.000 (2 runs)", "3 (2 runs; STABLE)")


def test_a_tier_that_is_not_for_production_fails(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, [*runs("f f f f", failed="f"), *runs("a", "b", "c", first=2)])

    assert cases_with(suite, "failure") == {
        "tier": (
            "🔴 CRITICAL 0/100, from 60 of 100 points assessed: 25 % of the runs took the most "
            "common path; retry explosion costs 42 points; "
            "success unknown, none of 4 runs ended in an error, but 57 % of the tool calls failed."
        )
    }


def test_a_gate_fails_errs_and_passes(tmp_path: Path) -> None:
    """A target without data is an error: it neither held nor failed."""
    targets = [parse(text) for text in ("score>=1", "score>100", "brier_score>=0.5")]
    results = gate.check(report(tmp_path, attempts("t", True, False)), targets, 2)
    [suite] = parsed(junit.render_gate(results))

    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert cases_with(suite, "failure") == {
        "score>100 [support]": (
            "support: score is 100, required > 100 (2 runs; from 80 of 100 points assessed)"
        )
    }
    assert cases_with(suite, "error") == {
        "brier_score>=0.5 [support]": "support: brier_score >= 0.5 is not checked: not "
        "enough data: it needs 1 run "
        "with a "
        "confidence and a known outcome"
    }


def test_any_name_makes_sound_xml(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, runs("a", agent='<a & "b">\x00\x1b\ufffe'))

    assert suite.get("name", "").startswith('<a & "b">')
