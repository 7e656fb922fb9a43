"""Data that belong to two traces: it is joined where one process has all of them, and not where work is given out by trace."""

from __future__ import annotations

from typing import Final

from otel_reliability.model.span import AgentSpan, Kind

LINK: Final = "link"
RUN_KEY: Final = "run_key"
_NOT_KEYED: Final = frozenset({Kind.AGENT, Kind.WORKFLOW, Kind.OTHER})
"""Kinds whose runs go by their own spans, whatever the user's key says."""


def crossing(span: AgentSpan) -> tuple[str, ...]:
    """By what a span may belong to a run of another trace: the link of a messaging hop, or the user's own key.

    >>> from otel_reliability.testing import agent
    >>> crossing(agent(1)), crossing(agent(1, link=(b"another trace...", b"its span")))
    ((), ('link',))
    """
    link = span.link is not None and span.link[0] != span.trace_id
    keyed = span.notes is not None and span.notes.run_key is not None and span.kind not in _NOT_KEYED
    return (LINK,) * link + (RUN_KEY,) * keyed


def alone(span: AgentSpan) -> AgentSpan:
    """The span without what would join it to other traces."""
    found = crossing(span)
    if LINK in found:
        span = span._replace(link=None)
    if RUN_KEY in found and span.notes is not None:
        span = span._replace(notes=span.notes._replace(run_key=None))
    return span
