"""Standard output, as it suits what is written."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

from rich.console import Console


def write(text: str) -> None:
    """Text for programs: in UTF-8, whatever the locale says."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def show(render: Callable[[Console], None]) -> None:
    """A page for people. Where nobody looks (a pipe, a file) it is plain, and lines end where their text does."""
    console = Console(highlight=False, soft_wrap=False)
    if console.is_terminal:
        render(console)
        return
    page = io.StringIO()
    render(Console(file=page, width=console.width, highlight=False, color_system=None))
    write("".join(line.rstrip() + "\n" for line in page.getvalue().splitlines()))
