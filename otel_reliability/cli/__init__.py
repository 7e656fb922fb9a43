"""The command line: `otel-reliability`. One file a command."""

from __future__ import annotations

import sys
from typing import Final

EXTRA: Final = frozenset({"click", "rich"})
"""The packages of the extra `cli`: the in-process door is installed without them."""
BAD_USAGE: Final = 2


def main() -> None:
    """Where `otel-reliability` begins."""
    try:
        from otel_reliability.cli.app import app  # noqa: PLC0415  see EXTRA

        app()
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRA:
            raise
        print(
            f"otel-reliability: the command line needs {package}; pip install 'otel-reliability[cli]'.", file=sys.stderr
        )
        sys.exit(BAD_USAGE)
