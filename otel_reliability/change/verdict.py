"""The three things that can be said of an agent's behaviour."""

from __future__ import annotations

import enum


class Verdict(enum.Enum):
    """CHANGED and NO_CHANGE rest on evidence; NO_VERDICT says that there is none, which is neither."""

    CHANGED = "changed"
    NO_CHANGE = "no change"
    NO_VERDICT = "no verdict"
