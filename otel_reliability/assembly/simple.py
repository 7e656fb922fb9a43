"""The run that most telemetry tells: one agent, and beneath it model and tool calls, each told once.

What `Builder` gives for such a run, at a fraction of the cost: where there is one invocation, and no call inside another,
nothing has to be sorted out, and calls are worked on column by column. Whatever might be anything else is left to `Builder`;
tests hold these runs to its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add, ge, itemgetter, not_
from typing import Any, Final, Literal, TypeAlias

from otel_reliability.assembly import calls, outcome, retries, rows
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.calls import Item
from otel_reliability.assembly.compiled import CALLER, NATIVE, hang_on
from otel_reliability.assembly.judged import best
from otel_reliability.assembly.limits import ContextLimits
from otel_reliability.assembly.notes import NO_NOTES, merged
from otel_reliability.assembly.outcome import Verdict
from otel_reliability.assembly.rows import END, ID, PARENT, START, Models, Rows
from otel_reliability.assembly.rows import Tools as ToolRows
from otel_reliability.assembly.sampling import weight
from otel_reliability.config import Settings
from otel_reliability.model.columns import shared
from otel_reliability.model.model_calls import NO_MODEL_CALLS, ModelCalls
from otel_reliability.model.packed import NUMBER
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import AgentKey, CloseReason, Outcome, Run, Tools
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    InvocationFacts,
    Kind,
    Notes,
    Resource,
    Session,
    SpanId,
)
from otel_reliability.model.tool_calls import NO_TOOL_CALLS, ToolCalls

_AGENT, _MODEL, _TOOL, _CHAIN, _RETRIEVAL = Kind.AGENT, Kind.MODEL, Kind.TOOL, Kind.CHAIN, Kind.RETRIEVAL
_ORDER: Final = itemgetter(*(AgentSpan._fields.index(name) for name in ("start_ns", "end_ns", "span_id")))
"""`tree.span_order` within one trace."""
_ROW_ORDER: Final = itemgetter(START, END, ID)
_COMPLETED: Final = Verdict(Outcome.COMPLETED, "end")
_BY_STATUS: Final = Verdict(Outcome.SUCCESS, "status")
_BY_ERROR: Final = Verdict(Outcome.FAILURE, "root_error")
_BY_LIMIT: Final = Verdict(Outcome.FAILURE, "limit")
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
MOST_KNOWN: Final = 4_096
"""Patterns of calls, and names of agents, that are remembered."""

MOST_AT_ONCE: Final = 129
"""Spans of a run, its root too, that the compiled maker tells apart."""

Marks: TypeAlias = tuple[Any, Any, Any]
"""Of the calls in the order of the clock, as columns: whether it is a retry, whether a repeat, and its place in the chain."""
_ALL_FIRST: Final[Marks] = (False, False, 0)


class _Found:
    """The spans of a run by kind, and what any of them may tell. `starts`, `ends`: of those that are
    no rows, and the first and the last of the rows. `parents`: what those hang on that are no rows.
    """

    __slots__ = ("chains", "ends", "evaluations", "models", "notes", "parents", "root", "session", "starts", "tools")

    def __init__(self, bundle: Bundle, root: AgentSpan) -> None:
        self.root = root
        self.models: Rows = bundle.models
        self.tools: Rows = bundle.tools
        self.chains: list[AgentSpan] = []
        self.parents: set[SpanId | None] = set()
        self.session: Session | None = None
        self.notes: Notes = NO_NOTES
        self.evaluations: tuple[Evaluation, ...] = ()
        self.starts = [span.start_ns for span in bundle.others]
        self.ends = [span.end_ns for span in bundle.others]


_Models: TypeAlias = tuple[ModelCalls, int | None, int | None, float | None, float | None]
"""The model calls, and what they sum up to: input, output, pressure, cost."""
_Tools: TypeAlias = tuple[ToolCalls, tuple[str, ...], bool]
"""The tool calls in the order of the clock, their names in that of the path, and whether all arguments are known."""
_NO_MODELS: Final[_Models] = (NO_MODEL_CALLS, None, None, None, None)
_NO_TOOLS: Final[_Tools] = (NO_TOOL_CALLS, (), True)


def _blank() -> Run:
    """What a run is that tells nothing."""
    return Run(
        run_id="",
        trace_id=b"",
        root_span_id=None,
        key=AgentKey("", "", "", ""),
        session_id=None,
        task_id=None,
        trial=None,
        condition=BASELINE,
        input_class=None,
        branches=(),
        nested=False,
        implicit=False,
        incomplete=False,
        start_ns=0,
        end_ns=0,
        path=(),
        tools=Tools.OBSERVED,
        tool_calls=NO_TOOL_CALLS,
        model_calls=NO_MODEL_CALLS,
        input_tokens=None,
        output_tokens=None,
        token_pressure=None,
        arguments_known=True,
        outcome=Outcome.UNKNOWN,
        outcome_source="",
        confidence=None,
        cost=None,
        violations=None,
        evaluations=(),
        weight=1,
        span_count=0,
    )


class SimpleBuilder:
    """Builds such runs under one set of settings."""

    def __init__(self, settings: Settings, limits: ContextLimits) -> None:
        self._outcome, self._limits = settings.outcome, limits
        self._parallel: Literal["canonical", "as_started"] = settings.assembly.parallel
        self._default = _BY_STATUS if settings.outcome.fallback == "status" else _COMPLETED
        self._marks: dict[tuple[Any, ...], Marks] = {}
        self._keys: dict[str, tuple[Resource, tuple[tuple[str, str], ...], AgentKey]] = {}
        self._caller, self.maker = CALLER, self._native()
        """The compiled maker of usual runs, None without it."""

    def build(self, bundle: Bundle, reason: CloseReason) -> Run | None:
        """The run of a bundle that holds every span once; None where it is another kind of run, several, none, or not whole."""
        usual = self.at_once(bundle, reason)
        if usual is not None:
            return usual
        found = _sorted_out(bundle)
        if found is None or not is_top(bundle, found.root) or not _are_beneath(bundle, found):
            return None
        root, notes = found.root, found.notes
        facts = root.facts
        if not isinstance(facts, InvocationFacts) or not facts.name or facts.weak or _is_peculiar(facts):
            return None
        models = self._models(found, facts, notes.context_limit)
        tools = self._tools(found, facts) if models is not None else None
        if models is None or tools is None:
            return None
        model_calls, used, wrote, pressure, cost = models
        tool_calls, path, arguments_known = tools
        outcome, source = self._verdict(root, facts, found)
        run: Run = _tuple(
            Run,
            (
                f"{root.trace_id.hex()}-{root.span_id.hex()}",
                root.trace_id,
                root.span_id,
                self._key(facts.name, root),
                None if found.session is None else found.session.id,
                notes.task_id,
                notes.trial,
                notes.condition or BASELINE,
                notes.input_class,
                notes.branches,
                False,
                False,
                False,
                min(found.starts),
                max(found.ends),
                path,
                Tools.OBSERVED,
                tool_calls,
                model_calls,
                used,
                wrote,
                pressure,
                arguments_known,
                outcome,
                source,
                notes.confidence,
                cost if notes.cost is None else notes.cost,
                notes.violations,
                found.evaluations,
                1 if root.threshold is None else weight(root.threshold, root.trace_id),
                bundle.count,
                reason,
            ),
        )
        return run

    def at_once(self, bundle: Bundle, reason: CloseReason) -> Run | None:
        """The run of a bundle, if it is a usual one and holds every span once, which need not be known. None: see otherwise."""
        if self.maker is None or len(bundle.others) != 1 or top_of(bundle) is None:
            return None
        if bundle.rest is None and bundle.count > MOST_AT_ONCE:
            return None
        rest = bundle.rest or bundle.lie_down()
        return None if rest is None or rest[NUMBER] >= MOST_AT_ONCE else self.maker.make(rest, bundle.others, reason)

    def _native(self) -> Any:
        """The compiled maker of such runs, with what it has to ask; None without it."""
        if NATIVE is None:
            return None
        none, verdicts = (NO_MODEL_CALLS, NO_TOOL_CALLS), (_BY_ERROR, _BY_LIMIT, self._default)
        asked = (self._key, self._limits.named, self._marks_of, weight)
        kinds, canonical = (ModelCalls, ToolCalls), self._parallel == "canonical"
        return NATIVE.Maker(kinds, _blank(), _AGENT, InvocationFacts, none, verdicts, canonical, self._keys, *asked)

    def _key(self, name: str, root: AgentSpan) -> AgentKey:
        resource, extra = root.resource, root.extra
        known = self._keys.get(name)
        if known is not None and known[0] is resource and known[1] == extra:
            return known[2]
        key = AgentKey(resource.service_namespace, resource.service_name, resource.environment, name, extra)
        if len(self._keys) >= MOST_KNOWN:
            self._keys.clear()
        self._keys[name] = (resource, extra, key)
        return key

    # --- Model calls --------------------------------------------------------------------------------------------------

    def _models(self, found: _Found, facts_of_root: InvocationFacts, told_limit: int | None) -> _Models | None:
        """Model calls that are surely not one told by two instrumentations; None where they might be."""
        if not found.models:
            return _NO_MODELS if facts_of_root.tokens is None else None
        usual = None if self._caller is None else self._caller.models(found.models, facts_of_root.name)
        if usual is not None:
            made, used, wrote, most, start, end = usual
            found.starts.append(start)
            found.ends.append(end)
            limit = told_limit or self._limits.named(found.models[rows.MODEL], found.models[rows.ASKED_MODEL])
            return made, used, wrote, None if limit is None else min(most / limit, 1.0), None
        told, width = _in_order(found.models), Models.width
        named, asked = told[rows.MODEL :: width], told[rows.ASKED_MODEL :: width]
        inputs, outputs = told[rows.INPUT :: width], told[rows.OUTPUT :: width]
        more = told[rows.MORE :: width]
        known_in, known_out = _known(inputs), _known(outputs)
        if not known_in and not known_out and facts_of_root.tokens is not None:
            return None
        names = named if all(named) else [one or other for one, other in zip(named, asked, strict=True)]
        starts, ends = _extent(found, told, width)
        costs = [one[3] for one in more if one is not None and one[3] is not None] if any(more) else ()
        if len(known_in) + len(known_out) < 2 * len(inputs) or any(more) or not (_are_one(named) and _are_one(asked)):
            pressure = self._pressure(told, width, told_limit)
        else:
            limit = told_limit or self._limits.named(named[0], asked[0])
            pressure = None if limit is None else min(max(map(add, inputs, outputs)) / limit, 1.0)
        each = (names, inputs, outputs, told[rows.FAILED :: width])
        columns = (*map(_shared, each), facts_of_root.name, tuple(starts), tuple(ends))
        return (
            ModelCalls(columns),
            sum(known_in) if known_in else None,
            sum(known_out) if known_out else None,
            pressure,
            float(sum(costs)) if costs else None,
        )

    def _pressure(self, told: Sequence[Any], width: int, told_limit: int | None) -> float | None:
        """The largest share of a context window that one model call filled, cut at 1."""
        found: float | None = None
        columns = (told[at::width] for at in (rows.MODEL, rows.ASKED_MODEL, rows.INPUT, rows.OUTPUT, rows.MORE))
        for model, other, used, wrote, more in zip(*columns, strict=True):
            if used is None:
                continue
            limit = told_limit or (None if more is None else more[2]) or self._limits.named(model, other)
            if limit is not None:
                share = (used + (wrote or 0)) / limit
                if found is None or share > found:
                    found = share
        return found if found is None or found < 1.0 else 1.0

    # --- Tool calls ---------------------------------------------------------------------------------------------------

    def _tools(self, found: _Found, facts_of_root: InvocationFacts) -> _Tools | None:
        """Tool calls that are each another call, or none where that is surely observed; None where it is not sure."""
        if not found.tools:
            return None if _may_be_hidden(found, facts_of_root) else _NO_TOOLS
        usual = (
            None
            if self._caller is None
            else self._caller.tools(
                found.tools, facts_of_root.name, self._marks_of, found.models, self._parallel == "canonical"
            )
        )
        if usual is not None:
            made, names, known, start, end = usual
            found.starts.append(start)
            found.ends.append(end)
            return made, names, known
        told, width = _in_order(found.tools), ToolRows.width
        ids = _known(told[rows.CALL_ID :: width])
        if len(set(ids)) < len(ids):
            return None
        names, failed = tuple(told[rows.NAME :: width]), tuple(told[rows.SOFTLY :: width])
        starts, ends = _extent(found, told, width)
        arguments, results = told[rows.ARGUMENTS :: width], told[rows.RESULT :: width]
        known, in_turn = None not in arguments, _are_in_turn(starts, ends)
        if len(set(names)) == len(names) or (known and len(set(zip(names, arguments, strict=True))) == len(names)):
            marks = _ALL_FIRST
        else:
            marks = self._marks_of(names, failed, arguments, results, None if in_turn else (starts, ends))
        columns = (
            names, _shared(map(not_, failed)), *marks, facts_of_root.name, tuple(starts), tuple(ends), _shared(arguments),
            _shared(results), _shared(told[rows.EFFECT :: width]),
        )  # fmt: skip
        return ToolCalls(columns), names if in_turn else self._path(found, told, width), known

    def _marks_of(
        self,
        names: tuple[str, ...],
        failed: tuple[bool, ...],
        arguments: Sequence[bytes | None] | None,
        results: Sequence[bytes | None] | None,
        times: tuple[Sequence[int], Sequence[int]] | None,
    ) -> Marks:
        """What calls in the order of the clock are to one another. `arguments`, `results`: None where none are known.
        `times`: None where they came one after the other; then it depends on nothing but which are equal, and is worked out once.
        """
        if times is not None:
            return _marks(names, failed, arguments, results, *times)
        pattern = names, failed, arguments and _pattern(arguments), results and _pattern(results)
        known = self._marks.get(pattern)
        if known is not None:
            return known
        if len(self._marks) >= MOST_KNOWN:
            self._marks.clear()
        marks = self._marks[pattern] = _marks(*pattern, range(len(names)), range(1, len(names) + 1))
        return marks

    def _path(self, found: _Found, told: Sequence[Any], width: int) -> tuple[str, ...]:
        """Where calls overlap, the order of the path is not that of the clock."""
        items = [Item(at, timed.order, timed.call, 0) for at, timed in enumerate(_timed(told, width))]
        starts = {0: sorted(found.models[START :: found.models.width])}
        return tuple(item.call.name or "" for item in calls.in_path_order(items, starts, self._parallel))

    def _verdict(self, root: AgentSpan, facts: InvocationFacts, found: _Found) -> Verdict:
        if found.notes is not NO_NOTES or found.evaluations:
            said = outcome.told(found.notes, found.evaluations, self._outcome)
            if said is not None:
                return said
        if root.failed:
            return _BY_ERROR
        return _BY_LIMIT if facts.limit_reached else self._default


# --- Sorting out ------------------------------------------------------------------------------------------------------


def _sorted_out(bundle: Bundle) -> _Found | None:
    """The spans by kind; None where there is not one agent, or anything but its calls and what contains them."""
    root = bundle.root
    if root is None:
        return None
    found = _Found(bundle, root)
    if len(bundle.others) > 1 and not _sort_others(bundle, found):
        return None
    _listen(bundle, found)
    return found


def _sort_others(bundle: Bundle, found: _Found) -> bool:
    """Spans that are no rows of the bundle. Calls may be among them, of which others say more: rows for this look."""
    models: list[AgentSpan] = []
    tools: list[AgentSpan] = []
    for span in bundle.others:
        kind = span.kind
        if kind is _MODEL:
            models.append(span)
        elif kind is _TOOL:
            tools.append(span)
        elif kind is _CHAIN:
            found.chains.append(span)
        elif span is found.root:
            continue
        elif kind is not _RETRIEVAL:
            return False
        found.parents.add(span.parent_id)
    found.chains.sort(key=_ORDER)
    if models and not _are_of_one_scope(bundle.models, models):
        return False
    all_models, all_tools = found.models.with_spans(models), found.tools.with_spans(tools)
    if all_models is None or all_tools is None:
        return False
    found.models, found.tools = all_models, all_tools
    return True


def _are_of_one_scope(told: Rows, more: list[AgentSpan]) -> bool:
    """Whether no other instrumentation may tell the same model calls once more."""
    scopes = {span.scope for span in more}
    return len(scopes | {told.scope} if told else scopes) == 1


def _listen(bundle: Bundle, found: _Found) -> None:
    """What the spans say of their run: the best session key, of one key the root's, then the first; notes; judgements."""
    others = bundle.others
    sessions = [told.session for told in (bundle.models, bundle.tools, *others) if told and told.session is not None]
    if sessions:
        found.session = sessions[0] if _are_one(sessions) else _best_session(bundle, found.root)
    for span in others:
        if span.notes is not None or span.evaluations:
            _hear(others, found)
            return


def _hear(others: Iterable[AgentSpan], found: _Found) -> None:
    notes = [span.notes for span in sorted(others, key=_ORDER) if span.notes is not None]
    found.notes = merged(notes) if notes else NO_NOTES
    found.evaluations = best(evaluation for span in others for evaluation in span.evaluations)


def _best_session(bundle: Bundle, root: AgentSpan) -> Session | None:
    session = root.session
    for span in sorted(bundle.spans(), key=_ORDER):
        told = span.session
        if told is not None and (session is None or told.rank < session.rank):
            session = told
    return session


def is_top(bundle: Bundle, root: AgentSpan) -> bool:
    """Whether nothing of this process is missing above a span, and no agent span stands there."""
    parent, remote = root.parent_id, root.parent_remote
    if parent is None:
        return True
    parent, remote = bundle.above(parent, remote)
    return parent is None or (remote is True and parent not in bundle.ids)


def top_of(bundle: Bundle) -> tuple[SpanId | None] | None:
    """What is missing, in another process, above a bundle with one span beside its rows; None where something of this process is,
    where an agent span stands there, and where spans of others tell a session.
    """
    if bundle.places and _tells_session(bundle):
        return None
    root = bundle.others[0]
    parent, remote = root.parent_id, root.parent_remote
    if parent is not None:
        parent, remote = bundle.above(parent, remote)
    return (parent,) if parent is None or (remote is True and not bundle.holds(parent)) else None


def _are_beneath(bundle: Bundle, found: _Found) -> bool:
    """Whether all spans hang on the root, or on containers that do; places that tell a session are not looked at here."""
    if bundle.places and _tells_session(bundle):
        return False
    around: set[SpanId | None] = {found.root.span_id}
    if hang_on(bundle.models, bundle.tools, found.root.span_id) and found.parents <= around:
        return True
    found.parents.update(bundle.models[PARENT :: Models.width], bundle.tools[PARENT :: ToolRows.width])
    here = set(bundle.ids)
    for chain in found.chains:
        if _parent(bundle, chain.parent_id, here) not in around:
            return False
        around.add(chain.span_id)
    return all(_parent(bundle, parent, here) in around for parent in found.parents)


def _parent(bundle: Bundle, parent: SpanId | None, here: set[SpanId]) -> SpanId | None:
    """The agent span above."""
    return parent if parent is None or parent in here else bundle.above(parent, None)[0]


def _tells_session(bundle: Bundle) -> bool:
    return any(place.session is not None for place in (bundle.places or {}).values())


def _is_peculiar(facts: InvocationFacts) -> bool:
    """Whether how the run ended is to be found among its steps."""
    return facts.expects_finish or facts.hides_failure


def _may_be_hidden(found: _Found, facts_of_root: InvocationFacts) -> bool:
    """Whether a run without tool spans may have called tools all the same."""
    containers = [facts for chain in found.chains if isinstance(facts := chain.facts, InvocationFacts)]
    if any(facts.emits_no_tools for facts in (facts_of_root, *containers)):
        return True
    models = found.models
    more = models[rows.MORE :: models.width]
    return any(models[rows.ASKS :: models.width]) or any(one[4] for one in more if one is not None)


# --- Columns ----------------------------------------------------------------------------------------------------------


def _in_order(found: Rows) -> list[Any]:
    """The rows in `tree.span_order`, which most are in as they came."""
    width = found.width
    starts = found[START::width]
    if len(set(starts)) == len(starts) and sorted(starts) == starts:
        return found
    each = sorted((found[at : at + width] for at in range(0, len(found), width)), key=_ROW_ORDER)
    return [value for row in each for value in row]


def _extent(found: _Found, told: Sequence[Any], width: int) -> tuple[Sequence[int], Sequence[int]]:
    """When each began and ended; when the first and the last did is noted."""
    starts, ends = told[START::width], told[END::width]
    found.starts.append(starts[0])
    found.ends.append(max(ends))
    return starts, ends


def _are_one(values: list[Any]) -> bool:
    return values.count(values[0]) == len(values)


def _known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None] if None in values else values


def _are_in_turn(starts: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether each call began after the one before it had ended; calls come in the order of their starts."""
    return all(map(ge, starts[1:], ends)) and len(set(starts)) == len(starts)


def _timed(told: Sequence[Any], width: int) -> list[retries.Timed]:
    return [
        retries.Timed(
            (told[at + START], told[at + END], told[at + ID], 0),
            told[at + START],
            told[at + END],
            Call(*told[at + rows.NAME : at + width]),
        )
        for at in range(0, len(told), width)
    ]


def _pattern(hashes: Sequence[bytes | None]) -> tuple[int | None, ...]:
    """Which are equal: for each the first that is, None for what is not known."""
    return tuple([None if one is None else hashes.index(one) for one in hashes])


def _marks(names: Sequence[str], *told: Sequence[Any] | None) -> Marks:
    """What calls in the order of the clock are to one another: names, failed, arguments, results, starts, ends."""
    columns = [(None,) * len(names) if one is None else one for one in (names, *told)]
    timed = [
        retries.Timed((start, end, b"", at), start, end, Call(name, None, asked, bad, result))
        for at, (name, bad, asked, result, start, end) in enumerate(zip(*columns, strict=True))
    ]
    retry, again, chain = map(_shared, zip(*retries.mark(timed), strict=True))
    return retry, again, chain


def _shared(column: Iterable[Any]) -> Any:
    return shared(tuple(column))
