"""Reports of users and evaluators on a run: the notes on its spans, and evaluations, in whichever
way they arrived.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec.structs import asdict, replace

from otel_reliability.assembly.final_ids import FinalIds
from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.outcome import NO_NOTES, latest
from otel_reliability.assembly.span_tree import NONE, SpanTree, is_kept
from otel_reliability.assembly.units import Target, Unit, Units
from otel_reliability.model.span import CONDITIONS, INVOCATIONS, Evaluation, Notes, TraceId

_TRUTH: Final[Mapping[str, bool]] = {"true": True, "false": False}
MAX_DIGITS: Final = 10
"""Digits of a resource's trial number; a longer one counts as absent."""
Evaluated: TypeAlias = Mapping[Target, Sequence[Evaluation]]
"""Evaluations that arrived apart from spans, by what they are about."""


def targets(
    tree: SpanTree,
    units: Units,
    evaluations: Iterable[Evaluation],
    final_ids: Mapping[TraceId, FinalIds],
) -> Evaluated:
    """Return evaluations by what they are about: the one candidate of each; those with several are
    about none.
    """
    found: dict[Target, list[Evaluation]] = {}
    for evaluation in evaluations:
        possible = candidates(tree, units, evaluation, final_ids)
        if len(possible) == 1:
            found.setdefault(possible.pop(), []).append(evaluation)
    return found


def candidates(
    tree: SpanTree, units: Units, evaluation: Evaluation, final_ids: Mapping[TraceId, FinalIds]
) -> set[Target]:
    """Return what an evaluation may be about.

    An evaluation is about the span that it names, or the nearest agent span above that, else about
    the one unit below it. Without a known span it is about the one unit of its trace that an agent
    or workflow heads, else the trace's one unit. None where a unit of the trace that may have been
    it is final.
    """
    spans = tree.spans
    trace = [i for i, span in enumerate(spans) if span.trace_id == evaluation.trace_id]
    at = next((i for i in trace if spans[i].span_id == evaluation.span_id), None)
    if at is not None:
        here = at if is_kept(spans[at]) else tree.kept_above(at)
        if here != NONE:
            return {here}
        below = (unit for i, unit in enumerate(units.of) if tree.is_below(i, at))
        return {unit for unit in below if unit is not None}
    known = {unit for i in trace if (unit := units.of[i]) is not None}
    headed = {unit for unit in known if not unit.is_loose}
    final = final_ids.get(evaluation.trace_id or b"")
    if final is not None and final.ids and (final.had_invocation or not headed):
        return set()
    return set(headed or known)


class Fate(enum.Enum):
    """Fate of an evaluation when units of its trace become final. STAYS: it may be about another
    unit, or about what may still arrive. LEAVES: it is about a final one. WITHOUT_RUN: it may be
    about final units and others, so it is about none; left alone, the others would get it.
    """

    STAYS = "stays"
    LEAVES = "leaves"
    WITHOUT_RUN = "without_run"


def fate_of(
    evaluation: Evaluation,
    tree: SpanTree,
    units: Units,
    final_ids: Mapping[TraceId, FinalIds],
    becoming_final: Container[int],
) -> Fate:
    """Return what becomes of an evaluation when these spans become final."""
    spans = tree.spans
    targeted = candidates(tree, units, evaluation, final_ids)
    possible = {each.head if isinstance(each, Unit) else each for each in targeted}
    if not any(i in becoming_final for i in possible):
        return Fate.STAYS
    if len(possible) == 1:
        return Fate.LEAVES
    named = evaluation.span_id
    if named is None:
        is_clear = any(spans[i].kind in INVOCATIONS for i in possible)
    else:
        is_clear = any(span.span_id == named for span in spans)
    return Fate.WITHOUT_RUN if is_clear else Fate.STAYS


def reports_of(
    tree: SpanTree,
    units: Units,
    root: Invocation | None,
    members: Sequence[int],
    apart: Evaluated,
) -> tuple[Notes, tuple[Evaluation, ...]]:
    """Return the notes and the evaluations of a run: those of spans whose innermost run it is, or
    which lie above all runs, and evaluations that arrived `apart` about such a span or about the
    runs of its unit. `members`: its spans, or those with notes or evaluations where none arrived
    apart.
    """
    spans = tree.spans
    if root is not None and len(tree.invocations) > 1:
        innermost = [(i, tree.innermost(i)) for i in members]
        own: Sequence[int] = [i for i, node in innermost if node is None or node.root is root]
    else:
        own = members
    evaluations = [
        evaluation for i in own for evaluation in (*spans[i].evaluations, *apart.get(i, ()))
    ]
    if apart and (root is None or root.run_above is None):
        own_units = {units.of[i] for i in (members if root is None else (root.at,))}
        evaluations += [
            evaluation
            for unit in own_units
            if unit is not None
            for evaluation in apart.get(unit, ())
        ]
    return merged([note for i in own if (note := spans[i].notes) is not None]), latest(evaluations)


def of_attempt(notes: Notes, attempt: Sequence[str], *, nested: bool) -> Notes:
    """Return the notes of a run, completed by what its resource says (`ATTEMPT_KEYS`): the spans'
    own notes come first. Whether the attempt succeeded is known of its top-level runs only.

    >>> notes = of_attempt(Notes(trial=4), ("refund", "1", "fault", "true"), nested=False)
    >>> notes.task_id, notes.trial, notes.success
    ('refund', 4, True)
    """
    task_id, trial, condition, success = attempt
    known = notes.success is not None or notes.reward is not None
    return replace(
        notes,
        task_id=notes.task_id or task_id or None,
        trial=_trial(trial) if notes.trial is None else notes.trial,
        condition=notes.condition or (condition if condition in CONDITIONS else None),
        success=notes.success if known or nested else _TRUTH.get(success.lower()),
    )


def _trial(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < MAX_DIGITS else None


def merged(notes: Sequence[Notes]) -> Notes:
    """Field by field, the latest wins; decisions are put together. In the order of the spans'
    starts.

    >>> latest = merged([Notes(task_id="a", trial=1), Notes(task_id="b")])
    >>> latest.task_id, latest.trial
    ('b', 1)
    """
    if len(notes) < 2:
        return notes[0] if notes else NO_NOTES
    found = dict[str, Any]()
    branches = dict[str, str]()
    for note in notes:
        found.update((field, value) for field, value in asdict(note).items() if value is not None)
        branches.update(note.branches)
    found["branches"] = tuple(sorted(branches.items()))
    return Notes(**found)
