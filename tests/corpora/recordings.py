"""Recordings of ../shared/corpora: their spans, the runs that the product rebuilds from them, and
their truth.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from otel_reliability.config import Settings
from otel_reliability.engine import Accounts, Engine
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import Evaluation, RawSpan
from otel_reliability.sources.otlp_json import read_file
from tests.shared import MADE, SHARED, shared

CAPTURED: Final = "corpora/captured"
LOGS: Final = ".logs"
CAPTURES: Final = tuple(
    sorted(
        name
        for file in (SHARED / CAPTURED).glob("*.jsonl.gz")
        if not (name := file.name.removesuffix(".jsonl.gz")).endswith(LOGS)
    )
)
"""Every capture of a real framework by name; none where ../shared is not."""
MADE_CAPTURES: Final = tuple(
    sorted(file.name.removesuffix(".jsonl.gz") for file in (MADE / CAPTURED).glob("*.jsonl.gz"))
)
"""Those that `tests.made.make` writes."""
ALL_CAPTURES: Final = (*CAPTURES, *MADE_CAPTURES)
every_capture: Final = pytest.mark.parametrize("capture", ALL_CAPTURES)
SETTINGS: Final = {"hash_key": "ab" * 32}
"""Settings under which two engines tell the same call by the same hash."""


class Recording(NamedTuple):
    """What a file holds."""

    spans: tuple[RawSpan, ...]
    evaluations: tuple[Evaluation, ...]


@functools.cache
def recording(path: str) -> Recording:
    """The spans and evaluations of a file below ../shared/corpora, none of them malformed."""
    batches = list(read_file(shared(f"corpora/{path}")))
    assert not [problem for batch in batches for problem in batch.malformed]
    spans = tuple(span for batch in batches for span in batch.spans)
    return Recording(
        spans, tuple(evaluation for batch in batches for evaluation in batch.evaluations)
    )


def captured(name: str) -> tuple[RawSpan, ...]:
    return recording(f"captured/{name}.jsonl.gz").spans


class Rebuilt(NamedTuple):
    """What the product makes of spans: the runs, the outermost of each first, and what became of
    every span.
    """

    runs: tuple[Run, ...]
    accounts: Accounts

    @property
    def tops(self) -> list[Run]:
        """The runs that are in no other."""
        return [run for run in self.runs if not run.nested]


def rebuilt(
    spans: Iterable[RawSpan], evaluations: Sequence[Evaluation] = (), **settings: Any
) -> Rebuilt:
    """The runs of spans in the order they come, as a file of them gives."""
    engine = Engine(Settings.load(SETTINGS | settings), clock=lambda: 0.0, wall=None)
    engine.receive(spans)
    engine.receive_evaluations(evaluations)
    engine.flush(CloseReason.END_OF_INPUT)
    runs = sorted(engine.take_final(), key=lambda run: (run.start_ns, run.nested, run.run_id))
    return Rebuilt(tuple(runs), engine.accounts)


@functools.cache
def rebuilt_capture(name: str) -> Rebuilt:
    """The runs of a capture as it lies on disk."""
    return rebuilt(captured(name))


class TrueCall(msgspec.Struct, frozen=True):
    """A tool call that a program made."""

    name: str
    agent: str
    ok: bool
    failure_kind: str | None = None
    handoff: bool = False

    @property
    def soft(self) -> bool:
        """Whether it returned its error as a result."""
        return self.failure_kind == "soft"


class TrueRun(msgspec.Struct, frozen=True):
    """What the program that made a capture knows of one run, under the names of the truth file."""

    id: str = msgspec.field(name="run_id")
    scenario: str
    agent: str
    session: str | None = msgspec.field(name="session_id")
    traces: frozenset[str] = msgspec.field(name="trace_ids")
    calls: tuple[TrueCall, ...] = msgspec.field(name="tool_calls")
    input_tokens: int
    output_tokens: int
    outcome: str
    retries: int = msgspec.field(name="identical_retries")
    session_via: str | None = None
    roots: frozenset[str] = msgspec.field(name="root_span_ids", default=frozenset())
    sub_agents: tuple[str, ...] = ()

    @property
    def has_soft_errors(self) -> bool:
        """Whether a call returned its error as a result: spans show it as they please."""
        return any(call.soft for call in self.calls)


class Truth(msgspec.Struct):
    """What is known of a capture. `not_held`: what no span or attribute of it holds, in the words
    of its maker.
    """

    runs: tuple[TrueRun, ...]
    not_held: frozenset[str] = msgspec.field(name="not_in_telemetry", default=frozenset())
    name: str = ""


@functools.cache
def truth(name: str) -> Truth:
    found = msgspec.json.decode(shared(f"{CAPTURED}/{name}.truth.json").read_bytes(), type=Truth)
    found.name = name
    return found
