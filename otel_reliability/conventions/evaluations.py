"""Evaluations that a span carries: as events, or flattened into its attributes.

Sources: OpenTelemetry GenAI, event `gen_ai.evaluation.result`, whose attributes some set on the
span itself; OpenInference, `evaluations.N.evaluation.*` and, the same by another word,
`annotations.N.annotation.*`. Log events are read where logs are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from otel_reliability.model.span import (
    EVALUATION,
    EVALUATION_LABEL,
    EVALUATION_NAME,
    EVALUATION_SCORE,
    Evaluation,
    RawSpan,
)

PREFIXES: Final = ("gen_ai.evaluation.", "evaluations.", "annotations.")
_FLAT: Final = re.compile(r"((?:evaluations\.\d+\.evaluation|annotations\.\d+\.annotation)\.)name")
_KEYS: Final = {EVALUATION_NAME: "name", EVALUATION_SCORE: "score", EVALUATION_LABEL: "label"}
_MOST: Final = 64


def read(span: RawSpan, *, flat: bool) -> tuple[Evaluation, ...]:
    """The evaluations of a span; `flat`: its attributes may hold some too. One without score and
    label is none.
    """
    given: list[tuple[Mapping[str, Any], int]] = [
        (event.attributes, event.time_ns) for event in span.events if event.name == EVALUATION
    ]
    if flat:
        given.append((span.attributes, span.end_ns))
        given += [(facts, span.end_ns) for facts in _flattened(span.attributes)]
    found = [Evaluation.of(facts, time_ns, span.trace_id, span.span_id) for facts, time_ns in given]
    return tuple(evaluation for evaluation in found if evaluation.name and not evaluation.is_empty)


def _flattened(attributes: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    starts = [match[1] for key in attributes if (match := _FLAT.fullmatch(key))]
    for start in sorted(starts)[:_MOST]:
        yield {key: attributes.get(start + field) for key, field in _KEYS.items()}
