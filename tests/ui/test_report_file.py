from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from msgspec import structs
from playwright.sync_api import expect

from otel_reliability.config import MetricSettings
from otel_reliability.recording import REPORT_SETTINGS
from otel_reliability.testing import write_otlp
from otel_reliability.ui import report_file
from tests.cli.command_line import call
from tests.report.build import attempts, comparison, report, runs
from tests.ui.browser import PHONE, Browser, Scheme, faults, is_too_wide
from tests.ui.test_in_browser import HOSTILE, wanderer


@pytest.fixture(scope="module", name="file")
def file_of(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on three agents, one of a name that was made to do harm."""
    folder = tmp_path_factory.mktemp("report")
    spans = [
        *wanderer(),
        *attempts("refund", True, False, first=50, agent=HOSTILE),
        *runs("a", "b", first=60),
    ]
    made = folder / "report.html"
    made.write_text(report_file.render(report(folder, spans)), "utf-8")
    return made


@pytest.mark.real
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_from_a_disk(file: Path, browser: Browser, scheme: Scheme) -> None:
    with browser.open(file.as_uri(), scheme=scheme) as page:
        expect(page.locator(".uplot canvas").first).to_be_visible()
        names = page.locator(".agents__name a").all_text_contents()
        assert page.locator("article.agent:visible").count() == 3
        page.evaluate(
            "document.querySelectorAll('details.one').forEach((one, at) => { one.open = at === 2 })"
        )

        assert set(names) == {"wanderer", HOSTILE, "support"}
        assert page.locator(".flow").count() >= 3
        assert faults(page) == []


@pytest.mark.real
def test_the_table_leads_into_the_file(file: Path, browser: Browser) -> None:
    with browser.open(file.as_uri(), width=PHONE) as page:
        page.get_by_role("link", name="wanderer").click()

        expect(
            page.locator("article.agent").filter(has_text="refund → pay").locator(".verdict")
        ).to_be_in_viewport()
        assert not is_too_wide(page)


def test_only_its_own_script_and_style_may_run(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    for tag in ("script", "style"):
        [inside] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy
        text = text.replace(inside, "")

    assert policy.startswith("default-src &#39;none&#39;")
    assert not re.search(r"""(?:src|href)=["'](?!#)|url\(|@import""", text)


def test_an_earlier_recording_stands_beside(tmp_path: Path) -> None:
    text = report_file.render(
        comparison(tmp_path, runs("a", "a", "a", "a"), runs("a", "b", "c", "a b"))[0]
    )

    assert "Since the earlier recording" in text
    assert re.search(
        r"Path entropy</th><td[^>]*>0.000</td><td[^>]*>1.000</td><td[^>]*>\+1.000 worse", text
    )
    assert re.search(r"\d+ numbers the same", text)


@pytest.mark.parametrize("threshold", [2, 3])
def test_runs_are_retry_explosions_from_the_threshold_that_is_set(
    tmp_path: Path, threshold: int
) -> None:
    settings = structs.replace(
        REPORT_SETTINGS, metrics=MetricSettings(min_runs=2, retry_threshold=threshold)
    )
    spans = [*runs("pay pay pay", failed="pay"), *runs("pay", first=2)]
    text = report_file.render(report(tmp_path, spans, settings))

    assert text.count('<span class="flag">retry explosion</span>') == (threshold == 2)
    assert ("kept retrying" in text) == (threshold == 2)


def test_of_very_many_the_least_reliable_are_told_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_file, "MAX_AGENTS", 2)
    spans = [
        one
        for at in range(5)
        for one in runs("a b", "a b"[: 1 + 2 * (at % 2)], first=1 + 2 * at, agent=f"agent-{at}")
    ]
    text = report_file.render(report(tmp_path, spans))

    assert re.findall(r"<h2>agent-<wbr>(\d)</h2>", text) == ["0", "2"]
    assert len(re.findall(r'href="#agent-', text)) == 2
    assert all(f">agent-<wbr>{at}<" in text for at in range(5))
    assert "Shown in full: the 2 with the lowest scores." in text


def test_nothing_is_told_of_nobody(tmp_path: Path) -> None:
    assert "No agent runs" in report_file.render(report(tmp_path, []))


def test_the_command_line_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_otlp(tmp_path / "old.jsonl", runs(*["a b"] * 30))
    new = write_otlp(tmp_path / "new.jsonl", runs(*["a b"] * 80, *["c d e f"] * 60))
    out = call(capsys, "report", new, "--format", "html", "--no-intervals").out
    beside = call(
        capsys, "report", new, "--format", "html", "--no-intervals", "--baseline", old
    ).out

    assert out.startswith("<!doctype html>")
    assert re.search(r"<b>Changed about observation \d+ .*?</b> .*c is used in 0 % → 100 %", out)
    assert "&#34;marks&#34;: [[" in out
    assert "Since the earlier recording" not in out
    assert "Since the earlier recording" in beside
