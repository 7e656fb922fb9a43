"""The command line: `otel-reliability`. One file a command."""

from __future__ import annotations

import sys

MISSING = (
    "otel-reliability: the command line needs {name}, which is not installed; pip install 'otel-reliability[cli]'."
)


def main() -> None:
    """Where `otel-reliability` begins."""
    try:
        from otel_reliability.cli.app import app  # noqa: PLC0415  the in-process door is installed without these packages
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        sys.exit(MISSING.format(name=error.name))
    app()
