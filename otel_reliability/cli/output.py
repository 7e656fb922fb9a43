"""Standard output, for programs and for people."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console


def write(text: str) -> None:
    """Write text for programs: in UTF-8 in every locale."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def show(render: Callable[[Console], None]) -> None:
    """Print a page for people; `?` replaces signs that the terminal's encoding lacks. Without a terminal (a pipe, a file) it has
    no colour, and lines end where their text does.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        with suppress(OSError, ValueError):
            reconfigure(errors="replace")
    console = Console(highlight=False, soft_wrap=False)
    if console.is_terminal:
        render(console)
        return
    page = io.StringIO()
    render(Console(file=page, width=console.width, highlight=False, color_system=None))
    write("".join(line.rstrip() + "\n" for line in page.getvalue().splitlines()))
