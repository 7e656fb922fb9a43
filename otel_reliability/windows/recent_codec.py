"""Whole runs as small as can be, for as long as they are kept for pages."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from otel_reliability.model.run import AgentKey, CloseReason, ModelCall, Outcome, Run, ToolCall, Tools
from otel_reliability.model.span import Evaluation

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
_CALL_START: Final = ToolCall._fields.index("start_ns")
_MODEL_START: Final = ModelCall._fields.index("start_ns")


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
    calls, models, start_ns = run.tool_calls, run.model_calls, run.start_ns
    plain: list[Any] = list(run)
    if run.run_id == _usual_id(run.trace_id, run.root_span_id):
        plain[_TRACE_ID] = plain[_ROOT] = True
    plain[_KEY] = tuple(run.key)
    plain[_RUN_ID] = plain[_END] = None
    plain[_PATH] = (calls is not None and run.path == _names(calls)) or run.path
    plain[_TOOLS] = run.tools.value
    plain[_CALLS] = None if calls is None else _columns(calls, _CALL_START, start_ns)
    plain[_MODELS] = _columns(models, _MODEL_START, start_ns)
    plain[_INPUT] = _told_by(run.input_tokens, [call.input_tokens for call in models])
    plain[_OUTPUT] = _told_by(run.output_tokens, [call.output_tokens for call in models])
    plain[_OUTCOME] = run.outcome.value
    plain[_EVALUATIONS] = tuple([tuple(one) for one in run.evaluations])
    plain[_CLOSED_BY] = run.closed_by.value
    return tuple(plain)


def _run(plain: Sequence[Any], run_id: str, end_ns: int) -> Run:
    fields = list(plain)
    fields[_RUN_ID], fields[_END] = run_id, end_ns
    start_ns = fields[_START]
    models = tuple([ModelCall(*row) for row in _rows(fields[_MODELS], _MODEL_START, start_ns)])
    calls = fields[_CALLS]
    if calls is not None:
        calls = tuple([ToolCall(*row) for row in _rows(calls, _CALL_START, start_ns)])
    fields[_CALLS], fields[_MODELS] = calls, models
    if fields[_TRACE_ID] is True:
        fields[_TRACE_ID], fields[_ROOT] = map(bytes.fromhex, run_id.split("-"))
    if fields[_PATH] is True:
        fields[_PATH] = _names(calls or ())
    if fields[_INPUT] is True:
        fields[_INPUT] = sum([call.input_tokens or 0 for call in models])
    if fields[_OUTPUT] is True:
        fields[_OUTPUT] = sum([call.output_tokens or 0 for call in models])
    fields[_KEY] = AgentKey(*fields[_KEY])
    fields[_TOOLS] = Tools(fields[_TOOLS])
    fields[_OUTCOME] = Outcome(fields[_OUTCOME])
    fields[_EVALUATIONS] = tuple([Evaluation(*one) for one in fields[_EVALUATIONS]])
    fields[_CLOSED_BY] = CloseReason(fields[_CLOSED_BY])
    return Run(*fields)


def _columns(calls: Sequence[ToolCall] | Sequence[ModelCall], first: int, start_ns: int) -> tuple[Any, ...]:
    """The fields of calls, each of all of them. From the place `first` on stand their starts, then their ends."""
    columns: list[Any] = list(zip(*calls, strict=True))
    for at in (first, first + 1) if columns else ():
        columns[at] = tuple([time_ns - start_ns for time_ns in columns[at]])
    return tuple(columns)


def _rows(columns: Sequence[Any], first: int, start_ns: int) -> Iterable[Sequence[Any]]:
    told = list(columns)
    for at in (first, first + 1) if told else ():
        told[at] = [since + start_ns for since in told[at]]
    return zip(*told, strict=True)


def _told_by(total: int | None, parts: Sequence[int | None]) -> int | None:
    """True where a total is the sum of its parts, else itself."""
    return True if None not in parts and total == sum(cast("Sequence[int]", parts)) else total


def _usual_id(trace_id: bytes, span_id: bytes | None) -> str:
    return "" if span_id is None else f"{trace_id.hex()}-{span_id.hex()}"


def _names(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    return tuple([call.name for call in calls])
