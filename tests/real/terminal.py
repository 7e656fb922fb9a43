"""A program in a terminal of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.real.waiting import until

STYLES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A module that runs as a program in a terminal of so many lines, and what stands there. There
    are none on Windows.
    """

    def __init__(
        self, env: Mapping[str, str], lines: int, *command: str, folder: Path | None = None
    ) -> None:
        import pty  # noqa: PLC0415  there is none on Windows

        self._seen = b""
        self._here, there = pty.openpty()
        self._program = subprocess.Popen(
            (sys.executable, "-m", *command),
            cwd=folder,
            env={**env, "COLUMNS": "100", "LINES": f"{lines}", "TERM": "xterm-256color"},
            stdin=there,
            stdout=there,
            stderr=there,
        )
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

    def end(self, number: signal.Signals) -> int:
        """Ask the program to end; its exit code."""
        self._program.send_signal(number)
        until(lambda: self.seen() and self._program.poll() is not None, "the program to end")
        return self._program.returncode

    def close(self) -> None:
        """Let the terminal go, and what still runs in it."""
        self._program.kill()
        self._program.wait()
        os.close(self._here)
