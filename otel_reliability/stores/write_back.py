"""Numbers of runs → scores in a trace store, so that people see them where they look at traces.

Writing again updates: Langfuse by the id of a score, Phoenix by name and identifier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.run import Run
from otel_reliability.stores.client import Client
from otel_reliability.stores.trace import chunks

PREFIX: Final = "otel_reliability."
IDENTIFIER: Final = "otel-reliability"
_AT_ONCE: Final = 100


class RunScore(NamedTuple):
    """One number of a run, on its trace."""

    trace_id: str
    name: str
    value: float


Write: TypeAlias = Callable[[Client, Sequence[RunScore]], None]


def scores_of(runs: Sequence[Run], distances: Mapping[str, float]) -> list[RunScore]:
    """Return the scores of top-level runs: `path_distance`, the mean distance of its path to those
    of the other runs (0 to 1), and the retries. Of several runs in one trace the greatest counts.
    """
    greatest: dict[tuple[str, str], float] = {}
    for run in runs:
        if run.nested:
            continue
        numbers = {"path_distance": distances.get(run.run_id), "retries": run.retries}
        for name, value in numbers.items():
            if value is not None:
                key = run.trace_id.hex(), PREFIX + name
                greatest[key] = max(greatest.get(key, 0.0), float(value))
    return [RunScore(trace_id, name, value) for (trace_id, name), value in greatest.items()]


def _to_langfuse(client: Client, scores: Sequence[RunScore]) -> None:
    for score in scores:
        identity = f"{score.trace_id}\0{score.name}".encode()
        body: dict[str, Any] = {
            "id": blake2b(identity, digest_size=16).hexdigest(),
            "traceId": score.trace_id,
            "name": score.name,
            "value": score.value,
            "dataType": "NUMERIC",
        }
        client.post("/api/public/scores", body)


def _to_phoenix(client: Client, scores: Sequence[RunScore]) -> None:
    for some in chunks(scores, _AT_ONCE):
        data = [
            {
                "trace_id": score.trace_id,
                "name": score.name,
                "annotator_kind": "CODE",
                "result": {"score": score.value},
                "identifier": IDENTIFIER,
            }
            for score in some
        ]
        client.post("/v1/trace_annotations?sync=true", {"data": data})  # else unknown ids pass


WRITERS: Final[Mapping[str, Write]] = {"langfuse": _to_langfuse, "phoenix": _to_phoenix}
