"""The three results of change detection."""

from __future__ import annotations

import enum


class Result(enum.Enum):
    """CHANGED and NO_CHANGE rest on data; NO_RESULT: there is not enough."""

    CHANGED = "changed"
    NO_CHANGE = "no change"
    NO_RESULT = "no result"
