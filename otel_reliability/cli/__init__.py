"""The command line: `otel-reliability`. One file a command."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Mapping
from typing import Final

EXTRAS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("click", "rich"), "cli"),
    **dict.fromkeys(("aiohttp", "jinja2", "yaml"), "service"),
    **dict.fromkeys(("mcp", "mcp_types"), "mcp"),
    "quixstreams": "kafka",
}
"""Packages that the in-process installation lacks, each with the extra that brings it."""
UNIX_ONLY: Final = "fcntl"
"""The module by which the service locks its state. Windows has none."""
BAD_USAGE: Final = 2
GARBAGE: Final = (200_000, 10, 20)
"""Number of new objects until the collector looks for circles among them. Lines and runs make none, and each
look costs what is alive.
"""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(*GARBAGE)
    atexit.register(gc.freeze)  # else the end looks for circles, for a third of a short command
    try:
        from otel_reliability.cli.app import app  # noqa: PLC0415  see EXTRAS

        app()
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == UNIX_ONLY:
            needs = "this needs Linux or macOS; on Windows run the service's container image"
        elif package in EXTRAS:
            needs = f"this needs {package}; pip install 'otel-reliability[{EXTRAS[package]}]'"
        else:
            raise
        print(f"otel-reliability: {needs}.", file=sys.stderr)
        sys.exit(BAD_USAGE)
