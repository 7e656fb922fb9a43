"""Parts that all stores share: a period, a trace, times as stores write them, evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from otel_reliability.model.span import EVALUATION, EVALUATION_NAME, RawEvent, RawSpan
from otel_reliability.sources.otlp_json import text
from otel_reliability.sources.otlp_write import traces_json

T = TypeVar("T")
SECOND: Final = 1_000_000_000

SCORE: Final = "gen_ai.evaluation.score.value"
LABEL: Final = "gen_ai.evaluation.score.label"


TASK: Final = "reliability.task.id"
"""Names the item of a dataset that a run works on."""


def prompt_of(name: str, version: str) -> dict[str, str]:
    """Return the attributes that name a prompt of a store."""
    return {"gen_ai.prompt.name": name, "gen_ai.prompt.version": version}


class Period(NamedTuple):
    """A period in Unix nanoseconds: the start is inside, the end is not."""

    start_ns: int
    end_ns: int

    def halves(self) -> tuple[Period, Period]:
        """Return the two halves, on whole seconds."""
        middle = (self.start_ns + self.end_ns) // 2 // SECOND * SECOND
        return Period(self.start_ns, middle), Period(middle, self.end_ns)

    @property
    def can_halve(self) -> bool:
        """True where each half is a second or longer."""
        return self.end_ns - self.start_ns >= 2 * SECOND and self.halves()[0] != self

    def left_out(self, number: int) -> str:
        """Return the sentence about a period that cannot be halved and holds more traces."""
        return (
            f"{number:,} traces or more began within {iso(self.start_ns)} and {iso(self.end_ns)}, "
            "and the store answers with no more at once: some are missing."
        )

    def pieces(self, longest_s: int) -> Iterator[Period]:
        """Yield periods of at most this length, in order."""
        step = longest_s * SECOND
        for start in range(self.start_ns, self.end_ns, step):
            yield Period(start, min(start + step, self.end_ns))


class Trace(NamedTuple):
    """A whole trace, as a request in OTLP-JSON."""

    trace_id: str
    document: Mapping[str, Any]


Known: TypeAlias = Callable[[str], bool]
"""Returns whether a trace, by its id, was fetched before."""


def iso(time_ns: int) -> str:
    """Return a time as stores take it.

    >>> iso(1_700_000_000_000_000_000)
    '2023-11-14T22:13:20.000000Z'
    """
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1_000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the values, so many at a time."""
    for at in range(0, len(values), size):
        yield values[at : at + size]


def trace_of(trace_id: str, spans: Iterable[RawSpan]) -> Trace:
    """Return the trace of these spans."""
    return Trace(trace_id, traces_json(sorted(spans, key=lambda span: span.start_ns)))


def evaluation(name: object, value: object, label: object, time_ns: int) -> RawEvent | None:
    """Return a score of a store as an evaluation of the GenAI conventions; None if it says nothing.
    A value that is no number is its label.
    """
    given: dict[str, Any] = {EVALUATION_NAME: text(name)}
    if isinstance(value, (int, float)):
        given[SCORE] = float(value)
    said = label if isinstance(label, str) else value
    if isinstance(said, str) and said:
        given[LABEL] = said
    if not given[EVALUATION_NAME] or len(given) == 1:
        return None
    return RawEvent(name=EVALUATION, time_ns=max(time_ns, 1), attributes=given)


def event_json(event: RawEvent) -> dict[str, Any]:
    """Return an evaluation as an event in OTLP-JSON."""
    return {
        "name": event.name,
        "timeUnixNano": str(event.time_ns),
        "attributes": [
            {
                "key": key,
                "value": {"stringValue" if isinstance(value, str) else "doubleValue": value},
            }
            for key, value in event.attributes.items()
        ],
    }


def root_of(spans: Sequence[dict[str, Any]], parent: str, own: str) -> dict[str, Any] | None:
    """Return the span of a trace that has no parent in it; None where there is no span."""
    ids = {span.get(own) for span in spans}
    return next((span for span in spans if span.get(parent) not in ids), None)
