"""The note of a reading where the arguments of calls were not in the telemetry."""

from __future__ import annotations


def arguments_note(unknown: int, runs: int) -> str:
    """The note of a reading about retries or repeats.

    >>> arguments_note(3, 20), arguments_note(0, 20)
    ('arguments unknown in 3 of 20 runs: their calls are matched by tool alone', '')
    """
    if not unknown:
        return ""
    return f"arguments unknown in {unknown} of {runs} runs: their calls are matched by tool alone"
