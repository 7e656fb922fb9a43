"""The words by which users and evaluators say that work succeeded or failed."""

from __future__ import annotations

from typing import Final

SUCCESS: Final = frozenset(
    {"success", "successful", "succeeded", "pass", "passed", "ok", "correct", "resolved"}
    | {"true", "yes", "good", "1"}
)
FAILURE: Final = frozenset(
    {"failure", "failed", "fail", "error", "incorrect", "unresolved", "false", "no", "bad", "0"}
)


def succeeded(word: str | None) -> bool | None:
    """Return what a word says, in any case and with blanks around it; None where it says nothing.

    >>> succeeded(" Passed"), succeeded("unresolved"), succeeded("7"), succeeded(None)
    (True, False, None, None)
    """
    if word is None:
        return None
    meant = word.strip().lower()
    return True if meant in SUCCESS else False if meant in FAILURE else None
