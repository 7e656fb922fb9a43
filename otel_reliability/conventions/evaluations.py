"""Evaluations that a span carries: as events, or flattened into its attributes.

Sources: OpenTelemetry GenAI, event `gen_ai.evaluation.result`, whose attributes some set on the span itself; OpenInference,
`evaluations.N.evaluation.*` and, the same by another word, `annotations.N.annotation.*`. Log events are read where logs are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.model.span import Evaluation, RawSpan

EVENT: Final = "gen_ai.evaluation.result"
PREFIX: Final = "gen_ai.evaluation."
PREFIXES: Final = (PREFIX, "evaluations.", "annotations.")

_FLAT: Final = re.compile(r"((?:evaluations\.\d+\.evaluation|annotations\.\d+\.annotation)\.)name")
_MOST: Final = 64


def may_hold(keys: str) -> bool:
    """Return whether attributes of these keys may hold an evaluation: one of two words is part of every key that matters here."""
    return "evaluation." in keys or "annotation." in keys


def read(span: RawSpan, *, flat: bool) -> tuple[Evaluation, ...]:
    """The evaluations of a span; `flat`: its attributes may hold some too. One without score and label is none."""
    found = [_genai(event.attributes, event.time_ns, span) for event in span.events if event.name == EVENT]
    if flat:
        found.append(_genai(span.attributes, span.end_ns, span))
        found.extend(_flattened(span))
    return tuple(evaluation for evaluation in found if evaluation is not None)


def _genai(attributes: Mapping[str, Any], time_ns: int, span: RawSpan) -> Evaluation | None:
    return _evaluation(
        attributes.get("gen_ai.evaluation.name"),
        attributes.get("gen_ai.evaluation.score.value"),
        attributes.get("gen_ai.evaluation.score.label"),
        time_ns,
        span,
        values.text(attributes.get("gen_ai.response.id")),
    )


def _flattened(span: RawSpan) -> Iterator[Evaluation | None]:
    attributes = span.attributes
    starts = [match[1] for key in attributes if (match := _FLAT.fullmatch(key))]
    for start in sorted(starts)[:_MOST]:
        name, score, label = (attributes.get(start + field) for field in ("name", "score", "label"))
        yield _evaluation(name, score, label, span.end_ns, span, None)


def _evaluation(
    name: object, score: object, label: object, time_ns: int, span: RawSpan, response_id: str | None
) -> Evaluation | None:
    called, number, word = values.text(name), _score(score), values.text(label)
    if called is None or (number is None and word is None):
        return None
    return Evaluation(called, number, word, time_ns, span.trace_id, span.span_id, response_id)


def _score(value: object) -> float | None:
    """A score; a check that passed scores 1."""
    return float(value) if isinstance(value, bool) else values.number(value)
