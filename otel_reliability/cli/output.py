"""Standard output, for programs and for people."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from rich.console import Console

PLAIN: Final = "otel-reliability-plain"
_PLAIN: Final = {"✓": "+", "✗": "x", "−": "-", "–": "-", "·": "."}
"""Replacement of each sign that means something, where a terminal's encoding lacks it."""


def write(text: str) -> None:
    """Write text for programs: in UTF-8 in every locale."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def plainly(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of text that an encoding lacks, `?` for what means nothing alone, and
    where to continue.

    >>> "✗ −1 ━".encode("ascii", PLAIN).decode()
    'x -1 ?'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(
        _PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]
    ), error.end


codecs.register_error(PLAIN, plainly)


def show(render: Callable[[Console], None]) -> None:
    """Print a page for people, in the signs that the terminal's encoding has. Without a terminal (a
    pipe, a file) it has no colour, and lines end where their text does.
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
