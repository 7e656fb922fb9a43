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
    if reconfigure is not None and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        reconfigure(encoding="utf-8")
    sys.stdout.write(text)


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


def show(render: Callable[[Console], None]) -> None:
    """Print a page for people; plain signs replace those that its encoding lacks. Without a terminal (a pipe, a file) it has no
    colour, and lines end where their text does.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        with suppress(OSError, ValueError):
            reconfigure(errors=PLAIN)
    console = Console(highlight=False, soft_wrap=False)
    if console.is_terminal:
        render(console)
        return
    page = io.StringIO()
    render(Console(file=page, width=console.width, highlight=False, color_system=None))
    write("".join(line.rstrip() + "\n" for line in page.getvalue().splitlines()))
