"""Whole runs as small as can be, for as long as they are kept for pages."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Sequence
from typing import Any, Final, cast

from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import AgentKey, CloseReason, Outcome, Run, Tools
from otel_reliability.model.span import Evaluation
from otel_reliability.model.tool_calls import ToolCalls

_RAW: Final = -12
"""Deflate without a header, over 4 KB at a time: runs are small."""
_LEVEL: Final = 6
_MEMORY: Final = 5
_FORMAT: Final = 2
"""Of `marshal`: without references, so that what is equal looks equal."""

_AT: Final = {name: at for at, name in enumerate(Run._fields)}
_RUN_ID, _TRACE_ID, _ROOT, _KEY = _AT["run_id"], _AT["trace_id"], _AT["root_span_id"], _AT["key"]
_START, _END, _PATH, _TOOLS = _AT["start_ns"], _AT["end_ns"], _AT["path"], _AT["tools"]
_CALLS, _MODELS, _INPUT, _OUTPUT = _AT["tool_calls"], _AT["model_calls"], _AT["input_tokens"], _AT["output_tokens"]
_OUTCOME, _EVALUATIONS, _CLOSED_BY = _AT["outcome"], _AT["evaluations"], _AT["closed_by"]
_CALL_START: Final = ToolCalls.fields.index("start_ns")
_MODEL_START: Final = ModelCalls.fields.index("start_ns")


class RunCodec:
    """Writes the runs of one agent, each as what sets it apart from the first that was written.

    >>> from otel_reliability.testing import run
    >>> codec = RunCodec()
    >>> kept = [run(["search", "book"], number) for number in range(3)]
    >>> [codec.read(codec.write(one), one.run_id, one.end_ns) for one in kept] == kept
    True
    """

    __slots__ = ("_usual",)

    def __init__(self) -> None:
        self._usual: bytes | None = None

    def write(self, run: Run) -> bytes:
        """The run, but for its id and its end, as bytes that this codec reads."""
        plain = marshal.dumps(_plain(run), _FORMAT)
        if self._usual is None:
            self._usual = plain
        press = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, self._usual)
        return press.compress(plain) + press.flush()

    def read(self, body: bytes, run_id: str, end_ns: int) -> Run:
        """The run, as it was."""
        plain = zlib.decompressobj(_RAW, self._usual or b"").decompress(body)
        return _run(marshal.loads(plain), run_id, end_ns)  # noqa: S302 (we wrote it)


def _plain(run: Run) -> tuple[Any, ...]:
    """The fields of a run in plain values; True is what others tell. Times are since its start, for so they repeat most."""
    calls = None if run.tool_calls is None else ToolCalls.of(run.tool_calls)
    models, start_ns = ModelCalls.of(run.model_calls), run.start_ns
    plain: list[Any] = list(run)
    if run.run_id == _usual_id(run.trace_id, run.root_span_id):
        plain[_TRACE_ID] = plain[_ROOT] = True
    plain[_KEY] = tuple(run.key)
    plain[_RUN_ID] = plain[_END] = None
    plain[_PATH] = (calls is not None and run.path == calls.names) or run.path
    plain[_TOOLS] = run.tools.value
    plain[_CALLS] = None if calls is None else _since(calls.columns, _CALL_START, start_ns)
    plain[_MODELS] = _since(models.columns, _MODEL_START, start_ns)
    plain[_INPUT] = _told_by(run.input_tokens, models.input_tokens)
    plain[_OUTPUT] = _told_by(run.output_tokens, models.output_tokens)
    plain[_OUTCOME] = run.outcome.value
    plain[_EVALUATIONS] = tuple([tuple(one) for one in run.evaluations])
    plain[_CLOSED_BY] = run.closed_by.value
    return tuple(plain)


def _run(plain: Sequence[Any], run_id: str, end_ns: int) -> Run:
    fields = list(plain)
    fields[_RUN_ID], fields[_END] = run_id, end_ns
    start_ns = fields[_START]
    calls, models = fields[_CALLS], ModelCalls(_since(fields[_MODELS], _MODEL_START, -start_ns))
    if calls is not None:
        calls = ToolCalls(_since(calls, _CALL_START, -start_ns))
    fields[_CALLS], fields[_MODELS] = calls, models
    if fields[_TRACE_ID] is True:
        fields[_TRACE_ID], fields[_ROOT] = map(bytes.fromhex, run_id.split("-"))
    if fields[_PATH] is True:
        fields[_PATH] = () if calls is None else calls.names
    if fields[_INPUT] is True:
        fields[_INPUT] = sum([tokens or 0 for tokens in models.input_tokens])
    if fields[_OUTPUT] is True:
        fields[_OUTPUT] = sum([tokens or 0 for tokens in models.output_tokens])
    fields[_KEY] = AgentKey(*fields[_KEY])
    fields[_TOOLS] = Tools(fields[_TOOLS])
    fields[_OUTCOME] = Outcome(fields[_OUTCOME])
    fields[_EVALUATIONS] = tuple([Evaluation(*one) for one in fields[_EVALUATIONS]])
    fields[_CLOSED_BY] = CloseReason(fields[_CLOSED_BY])
    return Run(*fields)


def _since(columns: tuple[Any, ...], first: int, start_ns: int) -> tuple[Any, ...]:
    """The columns of calls with their times since another; from the place `first` on stand their starts, then their ends."""
    starts, ends = columns[first : first + 2]
    began, ended = tuple([at - start_ns for at in starts]), tuple([at - start_ns for at in ends])
    return (*columns[:first], began, ended, *columns[first + 2 :])


def _told_by(total: int | None, parts: Sequence[int | None]) -> int | None:
    """True where a total is the sum of its parts, else itself."""
    return True if None not in parts and total == sum(cast("Sequence[int]", parts)) else total


def _usual_id(trace_id: bytes, span_id: bytes | None) -> str:
    return "" if span_id is None else f"{trace_id.hex()}-{span_id.hex()}"
