"""Show a page in a real browser."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.real.waiting import PATIENCE

QUIET = (
    "--headless",
    "--no-sandbox",  # the tests may run as root, where the sandbox refuses
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",  # it would look for its maker's servers
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class BrowserFailed(AssertionError):
    """The browser could not show a page."""


@dataclass(frozen=True)
class Chromium:
    """Headless Chromium, a new process and a new empty profile for every page.

    `program` and `driver` are the paths to hand to tools that drive a browser themselves (`CHROME_PATH`, WebDriver).
    """

    program: Path
    driver: Path

    def dom(self, url: str, *, settle: float = 0.0) -> str:
        """The page's DOM as HTML after its scripts ran, `settle` seconds of virtual time after it was loaded."""
        shown = self._run(url, settle, "--dump-dom").decode()
        if not shown:
            raise BrowserFailed(f"url {url}: the browser shows nothing: does anybody serve it?")
        return shown

    def screenshot(self, url: str, to: Path, *, width: int = 1280, height: int = 800, settle: float = 0.0) -> Path:
        """Write the page as a PNG picture."""
        self._run(url, settle, f"--screenshot={to}", f"--window-size={width},{height}")
        if not to.is_file():
            raise BrowserFailed(f"url {url}: no picture was written to {to}")
        return to

    def _run(self, url: str, settle: float, *flags: str) -> bytes:
        wait = [f"--virtual-time-budget={settle * 1000:.0f}"] if settle else []
        with tempfile.TemporaryDirectory(prefix="chromium-") as profile, Path(profile, "errors").open("w+b") as errors:
            command = [str(self.program), *QUIET, f"--user-data-dir={profile}", *wait, *flags, url]
            browser = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
            said = _output(browser, url)
            if browser.returncode != 0:
                errors.seek(0)
                raise BrowserFailed(f"url {url}: exit code {browser.returncode}: {errors.read()[-2000:].decode()}")
            return said


def _output(browser: subprocess.Popen[bytes], url: str) -> bytes:
    """What a browser printed; one that hangs is ended together with the helpers it started, by their process group."""
    try:
        return browser.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.communicate()
        raise BrowserFailed(f"url {url}: not shown after {PATIENCE:.0f} s") from None
