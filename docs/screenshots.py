"""Pictures of the pages and of reports: `python docs/screenshots.py` writes docs/images/page-*.

The demo's fleet sends to the service, whose pages a real browser photographs, light and dark; of
the recording that the same fleet leaves, the report is photographed as a file, and drawn as a
terminal shows it. The browser is that of the tests (`python tests/real/install.py chromium`). The
runs are of the last minutes, so times differ from picture to picture.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import urljoin

from playwright.sync_api import Browser, Page, expect, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from otel_reliability.demo.hosting import hosting
from otel_reliability.demo.replay import Endpoint, Replay, record
from tests.real.components import folder_of

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
AGENT: Final = "researcher"
AGENTS: Final = 11
"""Agents of the fleet."""
WIDTH: Final = 1180
MARGIN: Final = 10
PATIENCE_MS: Final = 60_000
"""What the service may take to tell of the whole fleet."""
SETTLING_MS: Final = 1_000
"""Until charts are drawn."""
COLUMNS: Final = 84


class Shot(NamedTuple):
    """Which page, how it looks, and down to which part of it is seen; all of it where none is
    named.
    """

    page: Literal["fleet", "agent", "report"]
    scheme: Literal["light", "dark"] = "light"
    last: str | None = None


REQUESTS: Final = "section[aria-labelledby^=requests]"
SHOTS: Final[Mapping[str, Shot]] = {
    "page-fleet.png": Shot("fleet"),
    "page-fleet-dark.png": Shot("fleet", "dark"),
    "page-agent.png": Shot("agent", last=REQUESTS),
    "page-agent-dark.png": Shot("agent", "dark", REQUESTS),
    "page-report.png": Shot("report", last=".agents"),
}
TERMINAL: Final = "page-terminal.svg"
FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""What rich would have a reader's browser fetch from elsewhere."""


def main() -> None:
    """Take all of them."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        spans = Path(folder) / "spans.jsonl"
        report = Path(folder) / "report.html"
        record(spans)
        report.write_text(_report(spans, "--format", "html"), encoding="utf-8")
        (IMAGES / TERMINAL).write_text(drawn(_report(spans, "--agent", AGENT)), encoding="utf-8")
        program = folder_of("chromium") / "bin" / "chromium"
        browser = playwright.chromium.launch(executable_path=str(program), args=["--no-sandbox"])
        with _pages(browser) as pages:
            _photograph(browser, {**pages, "report": report.as_uri()})
        browser.close()


def _report(spans: Path, *options: str) -> str:
    command = (
        sys.executable,
        "-m",
        "otel_reliability.cli",
        "report",
        spans.name,
        "--quiet",
        *options,
    )
    env = {**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": str(COLUMNS)}
    # our own program
    done = subprocess.run(  # noqa: S603
        command, cwd=spans.parent, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def drawn(told: str) -> str:
    """What the report says on a terminal, as a drawing."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS)
    console.print(Text.from_ansi(told.rstrip("\n")))
    title = f"otel-reliability report spans.jsonl --agent {AGENT}"
    return FONTS.sub("", console.export_svg(title=title, theme=MONOKAI, unique_id="report"))


@contextmanager
def _pages(browser: Browser) -> Generator[Mapping[str, str]]:
    """The addresses of the pages of a service that has taken in the whole fleet and draws a curve
    of each agent.
    """
    with hosting() as service:
        fleet_of = Replay(Endpoint(f"http://{service.addresses['http']}"))
        fleet = f"http://{service.addresses['ui']}/"
        page = browser.new_page()
        for _ in range(fleet_of.opening):
            fleet_of.round()
        page.goto(fleet)
        expect(page.locator(".agents__name a")).to_have_count(AGENTS, timeout=PATIENCE_MS)
        fleet_of.round()
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=AGENT))
        expect(row.locator(".spark")).to_be_visible(timeout=PATIENCE_MS)
        agent = page.get_by_role("link", name=AGENT).get_attribute("href") or ""
        page.close()
        yield {"fleet": fleet, "agent": urljoin(fleet, agent)}


def _photograph(browser: Browser, pages: Mapping[str, str]) -> None:
    for name, shot in SHOTS.items():
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 800},
            color_scheme=shot.scheme,
            reduced_motion="reduce",
        )
        page.goto(pages[shot.page])
        page.wait_for_timeout(SETTLING_MS)
        height = _bottom(page, shot.last)
        page.screenshot(
            path=IMAGES / name,
            full_page=True,
            clip={"x": 0, "y": 0, "width": WIDTH, "height": height},
        )
        page.close()


def _bottom(page: Page, last: str | None) -> float:
    """Where the picture ends."""
    box = page.locator(last or "body").first.bounding_box()
    return 0.0 if box is None else box["y"] + box["height"] + (MARGIN if last else 0)


if __name__ == "__main__":
    main()
