"""Real trace stores: what was sent to one and fetched from it gives the runs of the file, but for
what the store loses.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import get_annotations
from pathlib import Path
from typing import Any, Final

import msgspec

from otel_reliability.model.run import HASHED, AgentKey, ModelCall, Run, ToolCall
from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.stores.client import Client
from otel_reliability.stores.table import STORES
from otel_reliability.stores.trace import SECOND, Period, Trace
from tests.real.otlp import lines
from tests.real.stores.handle import PATIENCE_S, Jaeger, Mlflow, Phoenix, Store
from tests.real.waiting import until
from tests.shared import shared

CAPTURES: Final = (
    "langgraph-mlflow",
    "langgraph-openinference",
    "pydantic_ai-native",
    "strands-native",
)
"""Recordings of four conventions: by a scope, by keys of their own, by the standard's keys."""
PERIOD: Final = Period(1_790_000_000 * SECOND, 1_800_000_000 * SECOND)
"""Holds all of them."""
SETTINGS: Final = msgspec.structs.replace(REPORT_SETTINGS, hash_key="ab" * 32)
"""With equal hashes of equal arguments."""
MICROSECOND: Final = 1_000

Shown = dict[str, Any]


def recordings() -> list[Path]:
    return [shared(f"corpora/captured/{name}.jsonl.gz") for name in CAPTURES]


def ids_in(paths: list[Path]) -> set[str]:
    """Return the ids of the traces in recordings."""
    return {
        span["traceId"]
        for path in paths
        for line in lines(path)
        for group in json.loads(line)["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    }


def runs_in(*paths: Path) -> list[Run]:
    found: list[Run] = []
    recording = Recording(SETTINGS, final=found.extend)
    recording.read_all(paths)
    recording.close()
    assert not recording.problems
    return found


def fetched_from(store: Store, name: str, folder: Path) -> list[Run]:
    """Send the recordings to a store, and return the runs of what it then holds."""
    sent = recordings()
    for path in sent:
        store.fill(path)
    wanted = ids_in(sent)
    held: list[Trace] = []

    def has_all() -> bool:
        held[:] = STORES[name].fetch(Client(store.url), PERIOD, None, lambda _: False)
        return wanted <= {trace.trace_id for trace in held} and store.is_settled()

    until(has_all, f"{name} to hold {len(wanted)} traces", patience=PATIENCE_S, pause=1.0)
    back = folder / "back.jsonl"
    back.write_text("".join(json.dumps(trace.document) + "\n" for trace in held))
    return runs_in(back)


def agree(
    original: list[Run], fetched: list[Run], kept: Callable[[Run], Shown] | None = None
) -> None:
    """Check that the runs are equal in all that the store keeps."""
    keep = kept or shown
    wanted = {run.run_id: keep(run) for run in original}
    found = {run.run_id: keep(run) for run in fetched}
    assert found.keys() == wanted.keys()
    assert len(wanted) > 80
    for run_id, facts in wanted.items():
        assert found[run_id] == facts


def shown(run: Run) -> Shown:
    """Return everything of a run but the time at which it was closed."""
    return {**fields_of(run), "closed_by": None}


def fields_of(value: Run | ToolCall | ModelCall) -> Shown:
    return {name: getattr(value, name) for name in get_annotations(type(value))}


def without_scopes(run: Run) -> Shown:
    """Return a run without the instrumentation that emitted it."""
    made_of = [pair for pair in run.fingerprints if pair[0] != "framework"]
    return {**shown(run), "fingerprints": made_of}


def without_spacing(run: Run) -> Shown:
    """Return a run without scope, and without the values of hashes of JSON text as it stood."""
    kept = without_scopes(run)
    made_of = [(kind, "" if kind in HASHED else value) for kind, value in kept["fingerprints"]]
    return {**kept, "fingerprints": made_of}


def without_resource(run: Run) -> Shown:
    """Return a run without scope, resource and times."""
    kept = without_scopes(run)
    made_of = [pair for pair in kept["fingerprints"] if pair[0] != "version"]
    calls = [without_times(fields_of(call)) for call in run.tool_calls or ()]
    models = [without_times(fields_of(call)) for call in run.model_calls]
    return {
        **without_times(kept),
        "key": AgentKey("", "", "", run.key.agent, run.key.extra),
        "fingerprints": made_of,
        "tool_calls": calls,
        "model_calls": models,
    }


def without_times(facts: Shown) -> Shown:
    return {**facts, "start_ns": None, "end_ns": None}


def test_jaeger_gives_back_every_run_as_it_was(jaeger: Jaeger, tmp_path: Path) -> None:
    agree(runs_in(*recordings()), fetched_from(jaeger, "jaeger", tmp_path))


def test_mlflow_loses_scopes_and_spacing(mlflow: Mlflow, tmp_path: Path) -> None:
    fetched = fetched_from(mlflow, "mlflow", tmp_path)
    agree(runs_in(*recordings()), fetched, without_spacing)


def test_phoenix_loses_scopes_resources_and_nanoseconds(phoenix: Phoenix, tmp_path: Path) -> None:
    fetched = fetched_from(phoenix, "phoenix", tmp_path)
    original = runs_in(*recordings())
    assert {run.key.service_name for run in fetched} == {"default"}
    agree(original, fetched, without_resource)
    starts = {run.run_id: run.start_ns for run in fetched}
    assert all(abs(starts[run.run_id] - run.start_ns) <= 2 * MICROSECOND for run in original)
