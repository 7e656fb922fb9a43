"""From a run to the row that windows keep of it; its path, which is made once and shared by its
runs; and rows in order.

A row is kept in about 140 bytes: an agent keeps hundreds, and metrics read a row only when it
enters or leaves. The order of runs is (end time, run id), as bytes that compare alike and from
which both can be read.
"""

from __future__ import annotations

import marshal
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Reversible, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from otel_reliability.metrics.base import RunKind, data_of
from otel_reliability.metrics.stability.context_growth import slope_of
from otel_reliability.model.cached_input import cached_input
from otel_reliability.model.coding import coding_totals
from otel_reliability.model.flaws import flaws_of
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.row import CallTotals, Compressions, Path, Retries, Row
from otel_reliability.model.run import ModelCall, Run, ToolCall
from otel_reliability.model.span import OUTCOME, SEVERITIES, Evaluation, Subject, SubjectKind
from otel_reliability.model.tools import effects_of

CONSTRAINT: Final = "constraint."
CLEAN: Final = "none"
BY_STATUS: Final = "status"
"""Source of an outcome that is no more than an end without error."""

NO_RETRIES: Final = Retries(0, 0, None, 0, 0, 0)


def row_of(run: Run, paths: PathTable) -> Row:
    """Return what a window keeps of a run. `paths` holds its path until the path is released there.

    An incomplete run, and one whose tools cannot be observed, give no data to path metrics: their
    `path` and `effects` are None. The effects of a run without a task are not kept (None), unless
    it has none: it is compared with no other run.
    """
    path = None if run.incomplete else run.path
    calls = run.tool_calls
    models = run.model_calls
    task = run.task_id
    cached = cached_input(run)
    effects = None if path is None or calls is None else effects_of(calls)
    return Row(
        end_ns=run.end_ns,
        run_id=run.run_id,
        start_ns=run.start_ns,
        task=task,
        input_class=run.input_class,
        condition=run.condition,
        branches=run.branches,
        path=None if path is None else paths.intern(path),
        tool_calls=None if calls is None else len(calls),
        failed_calls=None if calls is None else sum([not call.ok for call in calls]),
        retries=None if calls is None else retries_of(calls, models),
        pressure=run.token_pressure,
        model_calls=len(models),
        tokens=run.tokens,
        latency_ns=sum([call.end_ns - call.start_ns for call in models]) // len(models)
        if models
        else None,
        outcome=run.outcome,
        confidence=run.confidence,
        cost=run.cost,
        violations=violations_of(run),
        session_id=run.session_id,
        signals=signals_of(run.evaluations),
        effects=effects if task is not None or not effects else None,
        weight=run.weight,
        arguments_known=run.arguments_known,
        by_status=run.outcome_source == BY_STATUS,
        models=tuple(sorted({call.model for call in models if call.model is not None})),
        step_growth=None if run.token_pressure is None else step_growth_of(run),
        compressions=compressions_of(run) if run.compressions else None,
        ended_in_error=run.ended_in_error,
        request=run.request if task is None else None,
        flaws=flaws_of(run),
        coding=coding_totals(run),
        cached_tokens=cached.cached,
        input_tokens=cached.given,
        nested=run.nested,
        outcome_key=run.outcome_key,
        outcome_ns=outcome_ns_of(run.evaluations),
    )


def step_growth_of(run: Run) -> float | None:
    """Return how much more of the context window each model call of the run's own agent fills than
    the call before.

    The context limit follows from the run's pressure and its largest call. None without three calls
    with tokens.
    """
    calls = [
        (call.agent, tokens) for call in run.model_calls if (tokens := call.tokens) is not None
    ]
    largest = max([tokens for _, tokens in calls], default=0)
    own = [tokens for agent, tokens in calls if agent == run.key.agent]
    slope = slope_of(own)
    return None if slope is None or not largest else slope * (run.token_pressure or 0.0) / largest


def retries_of(calls: Sequence[ToolCall], model_calls: Sequence[ModelCall]) -> Retries:
    """Return the retries and repeats of a run.

    Each costs its own time, and the tokens of the model call that asked for it: the last one to end
    before it began (which counts once, however many retries, or repeats, it asked for).
    """
    retries = [call for call in calls if call.retry]
    repeats = [call for call in calls if call.repeat]
    if not (retries or repeats):
        return NO_RETRIES
    longest = max(retries, key=lambda call: call.chain, default=None)
    return Retries(
        number=len(retries),
        longest_chain=0 if longest is None else longest.chain,
        tool=None if longest is None else longest.name,
        tokens=_tokens_of(retries, model_calls),
        duration_ns=sum([call.end_ns - call.start_ns for call in retries]),
        repeats=len(repeats),
        repeat_tokens=_tokens_of(repeats, model_calls),
        repeat_ns=sum([call.end_ns - call.start_ns for call in repeats]),
    )


def compressions_of(run: Run) -> Compressions:
    """Return the compressions of a run that has any.

    The calls are those of the agent whose context was compressed first. A call that began before
    the end of that compression is one before it.
    """
    done = [one for one in run.compressions if one.ok]
    sizes = [(one.tokens_before, one.tokens_after) for one in done]
    known = [(before, after) for before, after in sizes if before is not None and after is not None]
    calls = [call for call in run.tool_calls or () if call.agent == done[0].agent] if done else []
    return Compressions(
        number=len(done),
        failed=len(run.compressions) - len(done),
        tokens_before=sum(before for before, _ in known),
        tokens_after=sum(after for _, after in known),
        before=_totals_of([call for call in calls if call.start_ns < done[0].end_ns]),
        after=_totals_of([call for call in calls if call.start_ns >= done[0].end_ns]),
    )


def _totals_of(calls: Sequence[ToolCall]) -> CallTotals:
    return CallTotals(
        len(calls),
        sum(not call.ok for call in calls),
        sum(call.retry for call in calls),
        sum(call.repeat for call in calls),
    )


def violations_of(run: Run) -> tuple[tuple[str, str], ...] | None:
    """Return (constraint, severity) of what the run violated; empty: evaluated and clean; None: not
    evaluated.

    Evaluations named `constraint.<name>` count like `reliability.violations`, with label low,
    medium, high, or none.
    """
    evaluated = {
        evaluation.name.removeprefix(CONSTRAINT): evaluation.label.lower()
        for evaluation in run.evaluations
        if evaluation.name.startswith(CONSTRAINT)
        and evaluation.label is not None
        and evaluation.label.lower() in SEVERITIES | {CLEAN}
    }
    if not evaluated:
        return run.violations
    found = {(name, severity) for name, severity in evaluated.items() if severity != CLEAN}
    return tuple(sorted({*(run.violations or ()), *found}))


def signals_of(evaluations: tuple[Evaluation, ...]) -> tuple[tuple[str, float], ...]:
    """Return (name, score) of the evaluations of a run that have a score, sorted."""
    return tuple(sorted([(one.name, one.score) for one in evaluations if one.score is not None]))


def outcome_ns_of(evaluations: tuple[Evaluation, ...]) -> int | None:
    """Return when the outcome of a run became known that was reported apart from its spans; None
    without one.
    """
    return next((one.time_ns for one in evaluations if one.name == OUTCOME), None)


def _tokens_of(retries: Sequence[ToolCall], model_calls: Sequence[ModelCall]) -> int:
    if not retries:
        return 0
    calls = sorted(model_calls, key=lambda call: (call.end_ns, call.start_ns))
    ends = [call.end_ns for call in calls]
    asking = {bisect_right(ends, retry.start_ns) for retry in retries} - {0}
    return sum(calls[at - 1].tokens or 0 for at in asking)


# --- Paths ----------------------------------------------------------------------------------------

FIRST_CODE: Final = 0x21
SURROGATES: Final = range(0xD800, 0xE000)
CODES: Final = 1_000_000
"""Distinct step names alive at once that have a character of their own: nearly as many as Unicode
has.
"""
OTHER_CODE: Final = "\U0010ffff"
OTHER_STEP: Final = "__other__"
"""The name of all steps beyond that, which share a character; which steps they are is not
remembered.
"""


class PathTable:
    """Distinct paths, counted by the rows that hold them: what no row holds is forgotten, and its
    characters used again.

    A path's names are its steps as the run has them: tool names in order, hand-offs as `→agent`. A
    hand-off is a step like any other, since some frameworks report it as a tool call and some do
    not.

    Names are not counted: when a new one comes, and as many paths have been forgotten as there are,
    those of no path are forgotten. Paths that are still in use then keep what their characters
    stood for.

    >>> table = PathTable()
    >>> path = table.intern(("search", "read", "search"))
    >>> path.code, path.counts
    ('!"!', (('read', 1), ('search', 2)))
    >>> table.intern(("search", "read", "search")) is path
    True
    """

    __slots__ = ("_codes", "_forgotten", "_free", "_limit", "_made", "_names", "_paths")

    def __init__(self, limit: int = CODES) -> None:
        self._limit = limit
        self._paths: dict[str, Path] = {}
        """By their codes."""
        self._codes: dict[str, str] = {}
        """The character of each name."""
        self._names = {OTHER_CODE: OTHER_STEP}
        """The name of each character."""
        self._free: list[str] = []
        self._made = 0
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._paths)

    def intern(self, names: tuple[str, ...]) -> Path:
        """Return the path of these names, held once more; `release` gives it back."""
        codes = self._codes
        try:
            code = "".join([codes[name] for name in names])
        except KeyError:
            code = self._spell(names)
        path = self._paths.get(code)
        if path is None:
            path = self._paths[code] = Path(code, self._names)
        path.held += 1
        return path

    def release(self, path: Path) -> None:
        """Count one holder less."""
        path.held -= 1
        if not path.held:
            del self._paths[path.code]
            self._forgotten += 1

    def _spell(self, names: tuple[str, ...]) -> str:
        """Return the code of names of which one is new."""
        if self._forgotten > len(self._paths):
            self._forget_names()
        return "".join([self._code(name) for name in names])

    def _forget_names(self) -> None:
        """Free the characters of names that no path has."""
        used = set[str]().union(*self._paths)
        self._free += [code for code in self._names if code not in used and code != OTHER_CODE]
        self._codes = {name: code for name, code in self._codes.items() if code in used}
        self._names = {OTHER_CODE: OTHER_STEP} | {
            code: name for code, name in self._names.items() if code in used
        }
        for path in self._paths.values():
            path.spell_by(self._names)
        self._forgotten = 0

    def _code(self, name: str) -> str:
        code = self._codes.get(name)
        if code is None:
            code = self._free.pop() if self._free else self._next_code()
            if code != OTHER_CODE:
                self._codes[name] = code
                self._names[code] = name
        return code

    def _next_code(self) -> str:
        if self._made >= self._limit:
            return OTHER_CODE
        point = FIRST_CODE + self._made
        self._made += 1
        return chr(point if point < SURROGATES.start else point + len(SURROGATES))


# --- Rows in order --------------------------------------------------------------------------------


class Facts(NamedTuple):
    """Values that rows share."""

    values: tuple[Any, ...]
    """Those of the fields `_IN_FACTS`, in their order."""
    request_bytes: int
    """Size of the sketch at the end of the record; 0 without one."""


END_BYTES: Final = 10
_BIAS: Final = 1 << 79
"""Added to an end time, so that earlier ends than 1970 compare as they should."""
_HEX_ID = b"\1"
_TEXT_ID = b"\2"
_HEX_LENGTH: Final = 49
_TRACE_LENGTH: Final = 32
_HEX_END: Final = END_BYTES + 1 + 24
_STOP: Final = b"\0"
"""End of the id of text, so that a shorter id compares as the lesser."""

TRACE_BYTES: Final = 16
MAX_NEEDLES: Final = 16
"""Texts that are searched in each record before it is decoded."""

MAX_SHARED: Final = 8_192
"""Distinct facts that rows to come can share; rows that are kept keep theirs."""

_IN_RECORD: Final = (
    "pressure",
    "tokens",
    "cached_tokens",
    "input_tokens",
    "latency_ns",
    "confidence",
    "cost",
    "session_id",
    "signals",
    "step_growth",
    "outcome_key",
    "outcome_ns",
)
"""Fields in which nearly every two rows differ, besides their times, id, path and request."""
_IN_FACTS: Final = tuple(
    name
    for name in Row.__struct_fields__
    if name not in {"end_ns", "run_id", "start_ns", "path", "request", "group", *_IN_RECORD}
)
"""Fields that rows share."""
_READ: Final = ("end_ns", "run_id", "start_ns", "path", "request", "group", *_IN_RECORD, *_IN_FACTS)
"""All fields, in the order in which `RowStore.row` reads them."""
_TASK: Final = _IN_FACTS.index("task")
_own_values = attrgetter(*_IN_RECORD)
_shared_values = attrgetter(*_IN_FACTS)
_as_fields = itemgetter(*map(_READ.index, Row.__struct_fields__))
"""Brings values from the order of `_READ` into that of the fields of a row: by name, 36 values cost
twice as much.
"""
_known_facts = Remembered[Facts, Facts](MAX_SHARED)


class Sought(NamedTuple):
    """Runs, traces, sessions and keys whose rows are searched, as records hold them."""

    runs: frozenset[bytes]
    traces: frozenset[bytes]
    sessions: frozenset[str]
    keys: frozenset[str]
    needles: Sequence[bytes]
    """The sessions and keys, as bytes."""

    @classmethod
    def of(cls, subjects: Collection[Subject]) -> Sought:
        """Return what to search for these subjects."""
        named = {
            kind: frozenset([one.value for one in subjects if one.kind == kind])
            for kind in SubjectKind
        }
        sessions = named[SubjectKind.SESSION]
        keys = named[SubjectKind.HASHED_KEY]
        return cls(
            runs=frozenset(map(id_bytes, named[SubjectKind.RUN])),
            traces=frozenset(map(bytes.fromhex, named[SubjectKind.TRACE])),
            sessions=sessions,
            keys=keys,
            needles=[text.encode("utf-8", "surrogatepass") for text in (*sessions, *keys)],
        )


class DroppedRow(NamedTuple):
    """The part of a row that is needed when no window keeps it: its order, path and task."""

    order: bytes
    path: Path | None
    task: str | None


class RowsFrom(Reversible[Row]):
    """The rows of a store from an index on, each of them read when it is asked for."""

    def __init__(self, store: RowStore, first: int) -> None:
        self._store = store
        self._indices = range(first, len(store))

    def __iter__(self) -> Iterator[Row]:
        return map(self._store.row, self._indices)

    def __reversed__(self) -> Iterator[Row]:
        return map(self._store.row, reversed(self._indices))


class RowStore:
    """Rows sorted by (end time, run id).

    Of each row it keeps its path, the facts that it shares with other rows, and a record: its
    order, its own values, and at the end the sketch of its request, which is read the most often.

    >>> from otel_reliability.testing import row
    >>> store, first, second = RowStore(), row(["search"], 1), row(["book"], 2)
    >>> (
    ...     store.insert(second, order_of(second.end_ns, second.run_id)),
    ...     store.insert(first, order_of(first.end_ns, first.run_id)),
    ... )
    (0, 0)
    >>> store.rows() == [first, second], store.index(order_of(second.end_ns, second.run_id))
    (True, 1)
    """

    __slots__ = ("_facts", "_paths", "_records")

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self._paths: list[Path | None] = []
        self._facts: list[Facts] = []

    def __len__(self) -> int:
        return len(self._records)

    def insert(self, row: Row, order: bytes) -> int:
        """Insert a row of this order (`order_of` its end and id); return its index."""
        request = row.request or b""
        record = order + marshal.dumps((row.end_ns - row.start_ns, *_own_values(row))) + request
        records = self._records
        at = len(records) if not records or records[-1] < record else bisect_left(records, record)
        records.insert(at, record)
        self._paths.insert(at, row.path)
        self._facts.insert(at, _share(Facts(_shared_values(row), len(request))))
        return at

    def index(self, order: bytes) -> int | None:
        """Return the index of the row of this order; None without one."""
        return index_in(self._records, order)

    def find(self, run_id: str) -> int | None:
        """Return the index of the row of a run, whenever it ended; None without one. Takes time for
        every row.
        """
        wanted = id_bytes(run_id)
        return next(
            (at for at, record in enumerate(self._records) if record.startswith(wanted, END_BYTES)),
            None,
        )

    def sought(self, sought: Sought) -> Iterator[int]:
        """Yield the indices of the rows of these runs, traces, sessions and keys. Takes time for
        every row.
        """
        for at, record in enumerate(self._records):
            run_id, begin = _id_of(record)
            if run_id in sought.runs or run_id[1 : 1 + TRACE_BYTES] in sought.traces:
                yield at
            elif sought.needles and _may_hold(record, sought.needles):
                _, *values = marshal.loads(record[begin:])  # noqa: S302 (we wrote it)
                own = dict(zip(_IN_RECORD, values, strict=True))
                if own["session_id"] in sought.sessions or own["outcome_key"] in sought.keys:
                    yield at

    def after(self, end_ns: int) -> int:
        """Return the index of the first row that ended later."""
        return bisect_left(self._records, end_bytes(end_ns + 1))

    def end_ns(self, at: int) -> int:
        """Return the end time of a row."""
        return end_in(self._records[at])

    def run_id(self, at: int) -> str:
        """Return the run id of a row."""
        return run_id_in(self._records[at])[0]

    def row(self, at: int) -> Row:
        """Return a row."""
        record = self._records[at]
        run_id, begin = run_id_in(record)
        lasted_ns, *own = marshal.loads(record[begin:])  # noqa: S302 (we wrote it)
        end_ns = end_in(record)
        path = self._paths[at]
        request = self.request(at)
        shared = self._facts[at].values
        return Row(
            *_as_fields((end_ns, run_id, end_ns - lasted_ns, path, request, None, *own, *shared))
        )

    def dropped_row(self, at: int) -> DroppedRow:
        """Return what must be known of a row that is deleted next."""
        record = self._records[at]
        order = record[: _id_of(record)[1]]
        return DroppedRow(order, self._paths[at], self._facts[at].values[_TASK])

    def request(self, at: int) -> bytes | None:
        """Return the sketch of the request of a row; None without one."""
        size = self._facts[at].request_bytes
        return self._records[at][-size:] if size else None

    def rows(self, first: int = 0, last: int | None = None) -> list[Row]:
        """Return the rows from an index on, up to another."""
        return [self.row(at) for at in range(first, len(self) if last is None else last)]

    def kinds(self, places: Iterable[int]) -> list[RunKind]:
        """Return the rows of these indices by kinds, in the order of the first of each."""
        paths = self._paths
        facts = self._facts
        alike: dict[tuple[int, int], list[int]] = {}
        for at in places:
            alike.setdefault((id(paths[at]), id(facts[at])), []).append(at)
        rows = [(self.row(found[0]), len(found)) for found in alike.values()]
        return [RunKind(row, runs, data_of(row)) for row, runs in rows]

    def delete(self, first: int, number: int = 1) -> None:
        """Delete so many rows."""
        gone = slice(first, first + number)
        del self._records[gone], self._paths[gone], self._facts[gone]


def _may_hold(record: bytes, needles: Sequence[bytes]) -> bool:
    """Return whether a record may hold one of these texts; True for many: decoding is faster."""
    return len(needles) > MAX_NEEDLES or any(needle in record for needle in needles)


def _id_of(record: bytes) -> tuple[bytes, int]:
    """Return the part of a record that holds the id (`id_bytes`), and the length of the order."""
    if record[END_BYTES] == _HEX_ID[0]:
        return record[END_BYTES:_HEX_END], _HEX_END
    stop = record.index(_STOP, END_BYTES + 1) + 1
    return record[END_BYTES:stop], stop


def _share(facts: Facts) -> Facts:
    """Return equal facts that other rows have, if there are any."""
    found = _known_facts.get(facts)
    if found is None:
        found = _known_facts[facts] = facts
    return found


def index_in(records: Sequence[bytes], order: bytes) -> int | None:
    """Return the index of the record that begins with this order, among sorted ones; None without
    one.
    """
    at = bisect_left(records, order)
    return at if at < len(records) and records[at].startswith(order) else None


def order_of(end_ns: int, run_id: str) -> bytes:
    """Return the bytes of a run's order: 35 for the id of a trace and a span in lower-case
    hexadecimal, more for any other.

    >>> order_of(5, "b") < order_of(6, "a"), order_of(5, "a") < order_of(5, "aa")
    (True, True)
    """
    return end_bytes(end_ns) + id_bytes(run_id)


def end_bytes(end_ns: int) -> bytes:
    """Return the part of an order that holds the end: it compares as less than any order of the
    same end.
    """
    return (end_ns + _BIAS).to_bytes(END_BYTES)


def id_bytes(run_id: str) -> bytes:
    """Return the part of an order that holds the id."""
    if len(run_id) == _HEX_LENGTH and run_id[_TRACE_LENGTH] == "-" and run_id == run_id.lower():
        try:
            return _HEX_ID + bytes.fromhex(run_id[:_TRACE_LENGTH] + run_id[_TRACE_LENGTH + 1 :])
        except ValueError:
            pass
    return _TEXT_ID + run_id.encode("utf-8", "surrogatepass") + _STOP


def end_in(record: bytes) -> int:
    """Return the end time (ns) of bytes that begin with an order."""
    return int.from_bytes(record[:END_BYTES]) - _BIAS


def run_id_in(record: bytes) -> tuple[str, int]:
    """Return the run id of bytes that begin with an order, and the length of the order.

    >>> run_id_in(order_of(7, f"{'0af7' * 8}-{'b7ad' * 4}") + b"more")
    ('0af70af70af70af70af70af70af70af7-b7adb7adb7adb7ad', 35)
    """
    if record[END_BYTES] == _HEX_ID[0]:
        return record[END_BYTES + 1 : _HEX_END].hex("-", -16), _HEX_END
    stop = record.index(_STOP, END_BYTES + 1)
    return record[END_BYTES + 1 : stop].decode("utf-8", "surrogatepass"), stop + 1
