"""The state of an assembler as plain data, and an assembler from it: what a service writes down, and reads after a restart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from otel_reliability.assembly.closed_traces import Record
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, TraceId


class AssemblerState(NamedTuple):
    """What an assembler must know to go on. An age is in seconds, so that the time a process was down does not count.

    - `spans`: (age, span) of all traces with runs that are not final, in the order of their arrival.
    - `runs`: runs that were emitted and are not final. A restart emits nothing for those that are assembled again as they were.
    - `closed`: (trace id, record) of traces of which only ids are remembered; the first field of a record is its age.
    - `live`: the same of traces of which spans are kept too.
    - `evaluations`: (age, evaluation) of those that arrived apart and are not part of a final run.
    - `final`: the latest final runs, which can still be evaluated.
    - `accounts`: (what became of spans, why, number), spans of traces in `spans` left out.
    """

    spans: Sequence[tuple[float, AgentSpan]] = ()
    runs: Sequence[Run] = ()
    closed: Sequence[tuple[TraceId, Record]] = ()
    live: Sequence[tuple[TraceId, Record]] = ()
    evaluations: Sequence[tuple[float, Evaluation]] = ()
    final: Sequence[Run] = ()
    accounts: Sequence[tuple[str, str, int]] = ()


def batches(spans: Iterable[tuple[float, AgentSpan]]) -> Iterable[tuple[float, list[AgentSpan]]]:
    """Group spans by their age, the oldest first."""
    found: dict[float, list[AgentSpan]] = {}
    for age, span in spans:
        found.setdefault(age, []).append(span)
    return sorted(found.items(), key=lambda batch: -batch[0])
