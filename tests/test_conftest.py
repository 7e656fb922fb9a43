"""The rules that hold for every test, tried on a few tests in a process of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")
TESTS = """
import pytest

def test_needs_a_broker():
    pytest.skip("no broker is here")

def test_needs_a_recording():
    pytest.skip("../shared/corpora is not here")

@pytest.mark.xfail
def test_is_known_to_fail():
    assert False

@pytest.mark.soak
def test_takes_long():
    pass

def test_is_marked():
    import opentelemetry
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nmarkers =\n    real\n    sdk\n    soak\n")
    pytester.makepyfile(TESTS)
    return pytester


def test_skips_are_failures_in_ci(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")

    result = project.runpytest_subprocess()

    result.assert_outcomes(passed=1, failed=1, skipped=1, xfailed=1, deselected=1)
    result.stdout.fnmatch_lines(["CI is set, and this was skipped: *no broker is here*"])


def test_a_module_cannot_skip_itself_in_ci(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that skips as a whole would otherwise vanish unseen."""
    monkeypatch.setenv("CI", "true")
    project.makepyfile(test_whole="import pytest; pytest.importorskip('nothing_of_that_name')")

    project.runpytest_subprocess("test_whole.py").assert_outcomes(errors=1)


def test_what_meets_the_sdk_is_marked(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_meets="import opentelemetry.sdk\ndef test_a(): pass\ndef test_b(): pass",
        test_door="from otel_reliability.sources.sdk import read\ndef test_c(): assert read",
        test_other="def test_d(): assert 'opentelemetry'",
    )

    files = ("test_meets.py", "test_door.py", "test_other.py")
    project.runpytest_subprocess("-m", "sdk", *files).assert_outcomes(passed=3, deselected=1)
