"""A browser for the tests of pages: one for each file of tests, a new empty profile
for each page.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import sync_playwright

from tests.real.components import folder_of
from tests.ui.browser import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = folder_of("chromium") / "bin" / "chromium"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(program), args=["--no-sandbox"])
        yield Browser(running)
        running.close()
