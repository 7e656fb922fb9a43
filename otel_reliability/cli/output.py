"""Standard output, for programs and for people."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from rich.cells import cell_len
from rich.console import Console

PLAIN: Final = "otel-reliability-plain"
_PLAIN: Final = {
    **{step: str(height) for height, step in enumerate("▁▂▃▄▅▆▇█", 1)},
    **dict(
        zip("━╌─·−–→…✓●✗←×✅", ("#", ".", "-", ".", "-", "-", ">", "~", "+", "*", "x", "<", "x", "OK"), strict=True)
    ),
    **dict(zip("🟢🟡🟠🔴", ("++", "+-", "--", "!!"), strict=True)),
    "⚠": "!",
    "\ufe0f": "",
    "❌": "NO",
}
"""Replacement of each sign that a terminal lacks: as wide, so that columns stay columns. Histories become digits, bars `#`."""


def write(text: str) -> None:
    """Write text for programs: in UTF-8 in every locale."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and not _is_utf8(sys.stdout.encoding):
        reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "") == "utf8"


def plainly(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of text that an encoding lacks, and where to continue.

    >>> "🟢 ▁▅█ ━━╌ −1 → 2 ⚠ ü 日".encode("ascii", PLAIN).decode()
    '++ 158 ##. -1 > 2 ! ? ??'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign, "?" * cell_len(sign)) for sign in lacking), error.end


codecs.register_error(PLAIN, plainly)


def bear_any_encoding() -> None:
    """Let standard output replace what its encoding lacks by plain signs, instead of failing."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        with suppress(OSError, ValueError):
            reconfigure(errors=PLAIN)


def show(render: Callable[[Console], None]) -> None:
    """Print a page for people. Without a terminal (a pipe, a file) it has no colour, and lines end where their text does."""
    bear_any_encoding()
    console = Console(highlight=False, soft_wrap=False)
    if console.is_terminal:
        render(console)
        return
    page = io.StringIO()
    render(Console(file=page, width=console.width, highlight=False, color_system=None))
    write("".join(line.rstrip() + "\n" for line in page.getvalue().splitlines()))
