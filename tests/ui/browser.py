"""Pages as somebody sees them: opened in a real browser, with an account of everything that is
wrong with them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe  # pyright: ignore[reportMissingTypeStubs]
from playwright import sync_api as playwright
from playwright.sync_api import Page

Scheme = Literal["light", "dark"]

PHONE: Final = 360
DESK: Final = 1280
HEIGHT: Final = 800
PATIENCE: Final = 60_000
"""Milliseconds that something may take to appear: the machine is shared."""
playwright.expect.set_options(timeout=PATIENCE)
SERIOUS: Final = frozenset({"serious", "critical"})


class Browser:
    """Opens pages, each in a profile of its own."""

    def __init__(self, running: playwright.Browser) -> None:
        self._running = running

    @contextmanager
    def open(
        self,
        url: str,
        *,
        width: int = DESK,
        scheme: Scheme = "light",
        scripts: bool = True,
        token: str | None = None,
        refused: int = 0,
    ) -> Generator[Page]:
        """A page. It may ask nobody but who served it, and must leave the console empty, but for
        requests refused so.
        """
        known = (
            None
            if token is None
            else playwright.HttpCredentials(username="anybody", password=token)
        )
        profile = self._running.new_context(
            viewport={"width": width, "height": HEIGHT},
            color_scheme=scheme,
            java_script_enabled=scripts,
            http_credentials=known,
            reduced_motion="reduce",
        )
        profile.set_default_timeout(PATIENCE)
        page = profile.new_page()
        wrong = list[str]()
        page.on("console", lambda said: wrong.extend(_said(said.text, refused)))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: _refuse(dialog, wrong))
        page.on("request", lambda request: wrong.extend(_foreign(request.url, url)))
        page.goto(url)
        yield page
        profile.close()
        assert wrong == []


def _refuse(dialog: playwright.Dialog, wrong: list[str]) -> None:
    wrong.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def _said(text: str, refused: int) -> list[str]:
    expected = refused and f"the server responded with a status of {refused}" in text
    return [] if expected else [f"console: {text}"]


def _foreign(asked: str, own: str) -> list[str]:
    same = urlsplit(asked)[:2] == urlsplit(own)[:2] and (
        not own.startswith("file:") or asked.split("#", maxsplit=1)[0] == own
    )
    return [] if same else [f"request: {asked}"]


def faults(page: Page) -> list[str]:
    """What axe finds seriously wrong for people who use a keyboard, a screen reader,
    or see little.
    """
    axe: Any = Axe()
    answer: dict[str, Any] = axe.run(page).response
    return [
        f"{found['id']}: {node['target']}: {node.get('failureSummary', '')}"
        for found in answer["violations"]
        if found["impact"] in SERIOUS
        for node in found["nodes"]
    ]


def is_too_wide(page: Page) -> bool:
    """Whether the page as a whole has to be scrolled sideways."""
    return page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
