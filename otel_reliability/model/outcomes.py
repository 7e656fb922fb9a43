"""Outcomes that are reported apart from spans: a complaint, a merged pull request, a reopened
ticket. Most are known hours or days after the run.

Such an outcome is an evaluation of the reserved name `OUTCOME`. It says what it is about: a trace,
a run, a session, or a business key, of which only a keyed hash is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from otel_reliability.model.span import OUTCOME, Evaluation, Subject, SubjectKind, bounded
from otel_reliability.model.success_words import succeeded

FIELDS: Final[Mapping[str, SubjectKind]] = {
    "trace_id": SubjectKind.TRACE,
    "run_id": SubjectKind.RUN,
    "session_id": SubjectKind.SESSION,
    "key": SubjectKind.KEY,
}
"""Fields that say what an outcome is about, and the kind of subject that each of them names."""
SUCCESS: Final = "success"
TIME: Final = "time"
_TRACE_DIGITS: Final = 32


class BadOutcome(ValueError):
    """Error: a report that is no outcome. The message holds no content of it."""


def read_outcome(facts: Mapping[str, Any], now_ns: int) -> Evaluation:
    """Return the outcome of one report: one of `FIELDS`, `success`, and perhaps the `time` at which
    it became known (ISO 8601; else `now_ns`). Empty texts count as absent. Raise `BadOutcome`.

    >>> read_outcome({"session_id": "chat-7", "success": "failed"}, 5).about
    Subject(kind=<SubjectKind.SESSION: 'session'>, value='chat-7')
    """
    given = {field: facts[field] for field in FIELDS if facts.get(field) not in (None, "")}
    if len(given) != 1:
        raise BadOutcome(f"give one of {', '.join(FIELDS)}; there are {len(given)}")
    [(field, value)] = given.items()
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise BadOutcome(f"{field} is not a text or a whole number")
    text = bounded(str(value))
    if field == "trace_id":
        text = _hex(text)
    success = _truth(facts.get(SUCCESS))
    if success is None:
        raise BadOutcome(f"{SUCCESS} is not true or false")
    return outcome_of(success, Subject(FIELDS[field], text), _time(facts.get(TIME), now_ns))


def outcome_of(success: bool, about: Subject, time_ns: int) -> Evaluation:
    """Return the evaluation that an outcome is."""
    return Evaluation(OUTCOME, None, "pass" if success else "fail", time_ns, about=about)


def _hex(text: str) -> str:
    try:
        is_id = len(bytes.fromhex(text)) * 2 == len(text) == _TRACE_DIGITS
    except ValueError:
        is_id = False
    if not is_id:
        raise BadOutcome(f"trace_id is not {_TRACE_DIGITS} hexadecimal digits")
    return text.lower()


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else succeeded(str(value))


def _time(value: object, now_ns: int) -> int:
    if value in (None, ""):
        return now_ns
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise BadOutcome(f"{TIME} is not a time like 2026-01-31T10:00Z") from None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return round(seconds * 1_000_000) * 1_000
