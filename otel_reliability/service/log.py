"""Where a process tells what happens to it."""

from __future__ import annotations

import logging
import sys
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def log_to_stderr(level: str) -> None:
    """What happens to it; never what passes through it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    logger = logging.getLogger("otel_reliability")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
