"""The demo in a terminal: it follows live, goes on until Ctrl-C, and then leaves nothing but the file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_reliability.demo.fleet import A_ROUND, ROUNDS
from tests.real.waiting import until
from tests.real.web import answers

if sys.platform == "win32":
    pytest.skip("terminals are made another way there", allow_module_level=True)

import pty

STYLES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A program in a terminal of its own, and what stands there."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._seen = b""
        self._here, there = pty.openpty()
        env = {**os.environ, "TMPDIR": str(folder), "COLUMNS": "100", "LINES": "50", "TERM": "xterm-256color"}
        command = (sys.executable, "-m", "otel_reliability.demo", *arguments)
        self._program = subprocess.Popen(command, cwd=folder, env=env, stdin=there, stdout=there, stderr=there)
        os.close(there)
        os.set_blocking(self._here, False)

    def seen(self) -> str:
        """Everything so far, without colours and movements."""
        try:
            while found := os.read(self._here, 65_536):
                self._seen += found
        except OSError:
            pass  # nothing more for now, or for ever
        return STYLES.sub("", self._seen.decode(errors="replace"))

    def press_ctrl_c(self) -> int:
        """Ask it to end, as the terminal would; its exit code."""
        self._program.send_signal(signal.SIGINT)
        until(lambda: self.seen() and self._program.poll() is not None, "the demo to end")
        return self._program.returncode

    def close(self) -> None:
        """Let the terminal go, and what still runs in it."""
        self._program.kill()
        self._program.wait()
        os.close(self._here)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """The demo, at a quick pace."""
    found = Terminal(tmp_path, "--pace", "0.1")
    yield found
    found.close()


def test_it_follows_live_until_ctrl_c_and_leaves_the_file(terminal: Terminal, tmp_path: Path) -> None:
    """The fleet is shown while it runs, then the verdict; pages and numbers are there until the end, and gone with it."""
    until(lambda: "runs so far" in terminal.seen(), "the verdict")
    told = terminal.seen()
    (page,) = set(re.findall(r"its page, for people\s+(http://[\d.:]+)/", told))
    (metrics,) = set(re.findall(r"(http://[\d.:]+/metrics)", told))
    until(lambda: "all equal" in terminal.seen(), "the doors to agree")
    until(lambda: _runs(terminal) > ROUNDS * A_ROUND, "the fleet to go on")
    lives = answers(f"{page}/api/v1/agents"), answers(metrics)
    code = terminal.press_ctrl_c()

    assert "Round 1 of 24" in told
    assert told.index("is the least reliable so far") < told.index("researcher is unreliable")
    assert (lives, code) == ((True, True), 0)
    assert not answers(f"{page}/healthz")
    assert [file.name for file in tmp_path.iterdir()] == ["demo-spans.jsonl"]


def _runs(terminal: Terminal) -> int:
    found = re.findall(r"Live: ([\d,]+) runs so far", terminal.seen())
    return int(found[-1].replace(",", "")) if found else 0
