"""Conversations whose turns name the response that they continue (OpenAI's Responses API).

No id of the conversation is sent: each turn names the last response of the turn before it
(`gen_ai.request.previous_response.id`). The conversation has the id that its first turn names, or
that of the last response of its first turn; or, where a turn before it names a conversation, that.

The first turn does not know that another will follow, and turns may come in any order: events are
changed on their way out, and runs that came before are emitted again. What is remembered of a turn
is bounded; a turn that continues a forgotten one begins a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.assembly.memory import FindFinal
from otel_reliability.model.limit import Limit
from otel_reliability.model.run import Run, RunChange, RunEvent
from otel_reliability.model.span import TraceId

MAX_TURNS: Final = 32_768
"""Turns that are remembered; beyond, all are forgotten."""
MAX_FOLLOWING: Final = 100
"""Turns that are named again when one before them comes later."""
MAX_ALIKE: Final = 16
"""Turns with one last response: one that more of them have identifies none."""


_FINAL: Final = RunChange.FINAL
_WITHDRAWN: Final = RunChange.WITHDRAWN


class _Turn(Struct, eq=False):
    """A run, as far as it is needed. `run` is None once it is final. `session` is that with which
    it was emitted; `named`: the one that its own spans name.
    """

    trace_id: TraceId
    run_id: str
    previous: str | None
    last: str | None
    named: str | None
    run: Run | None
    session: str | None = None


class ResponseChains:
    """Names the conversations of runs that continue one another's responses."""

    def __init__(self, find_final: FindFinal) -> None:
        self._find_final = find_final
        self._turns: dict[str, _Turn] = {}
        self._by_last: dict[str, dict[str, _Turn]] = {}
        self._following: dict[str, dict[str, _Turn]] = {}
        self._forgotten = 0

    @property
    def limit(self) -> Limit:
        """The turns that are remembered; a hit is one that was forgotten."""
        return Limit("response_turns", len(self._turns), MAX_TURNS, self._forgotten)

    def pass_on(self, events: Iterable[RunEvent]) -> list[RunEvent]:
        """Return the events as they are emitted."""
        found: list[RunEvent] = []
        for event in events:
            run = event.run
            if run.nested or (run.last_response is None and run.previous_response is None):
                found.append(event)
            else:
                found += self._changed(event)
        return found

    def restore_final(self, run: Run) -> None:
        """Remember a run that became final before a restart."""
        is_turn = run.last_response is not None or run.previous_response is not None
        if is_turn and not run.nested and run.run_id not in self._turns:
            turn = self._add(run)
            turn.run = None
            turn.session = run.session_id

    def forget(self, run: Run) -> None:
        """Forget a final run, which no later one continues."""
        known = self._turns.get(run.run_id)
        if known is not None:
            self._remove(known)

    def _changed(self, event: RunEvent) -> Iterator[RunEvent]:
        run = event.run
        known = self._turns.get(run.run_id)
        previous = event.previous
        if previous is not None and known is not None:
            previous = _named(previous, known)
        if event.change is _WITHDRAWN:
            if known is None:
                yield event
                return
            self._remove(known)
            yield RunEvent(_WITHDRAWN, _named(run, known))
            yield from self._renamed(known)
            return
        is_new = known is None or (known.previous, known.last, known.named) != _links(run)
        if known is not None and is_new:
            self._remove(known)
        turn = self._add(run) if known is None or is_new else known
        turn.run = None if event.change is _FINAL or turn.run is None else run
        if is_new:
            turn.session = self._conversation(turn) if turn.named is None else turn.named
        yield RunEvent(event.change, _named(run, turn), previous)
        if is_new:
            yield from self._renamed(turn)

    def _add(self, run: Run) -> _Turn:
        if len(self._turns) >= MAX_TURNS:
            self._forgotten += len(self._turns)
            self._turns.clear()
            self._by_last.clear()
            self._following.clear()
        previous, last, named = _links(run)
        turn = _Turn(run.trace_id, run.run_id, previous, last, named, run)
        self._turns[run.run_id] = turn
        if last is not None:
            self._by_last.setdefault(last, {})[run.run_id] = turn
        if previous is not None:
            self._following.setdefault(previous, {})[run.run_id] = turn
        return turn

    def _remove(self, turn: _Turn) -> None:
        del self._turns[turn.run_id]
        for turns, response in ((self._by_last, turn.last), (self._following, turn.previous)):
            if response is not None:
                others = turns[response]
                del others[turn.run_id]
                if not others:
                    del turns[response]

    def _conversation(self, turn: _Turn) -> str | None:
        """Return the conversation of a turn that names none; None where no other turn is known."""
        if turn.previous is not None:
            found = [one.session for one in self._before(turn) if one.session is not None]
            return min(found, default=turn.previous)
        return turn.last if turn.last in self._following else None

    def _renamed(self, turn: _Turn) -> Iterator[RunEvent]:
        """Yield the turns that a new one names: the one before it, and those after it."""
        waiting = [*self._before(turn), *self._after(turn)]
        seen = {turn.run_id}
        while waiting and len(seen) < MAX_FOLLOWING:
            one = waiting.pop()
            if one.run_id in seen or one.named is not None:
                continue
            seen.add(one.run_id)
            session = self._conversation(one)
            run = one.run or self._find_final(one.trace_id, one.run_id)
            if session == one.session or run is None:
                continue
            earlier = _named(run, one)
            one.session = session
            yield RunEvent(RunChange.REVISED, _named(run, one), earlier)
            waiting += self._after(one)

    def _before(self, turn: _Turn) -> list[_Turn]:
        """Return the turns whose response a turn continues: one, or several attempts at it."""
        found = {} if turn.previous is None else self._by_last.get(turn.previous, {})
        return [*found.values()] if len(found) <= MAX_ALIKE else []

    def _after(self, turn: _Turn) -> list[_Turn]:
        found = {} if turn.last is None else self._following.get(turn.last, {})
        return [*islice(found.values(), MAX_FOLLOWING)]


def _links(run: Run) -> tuple[str | None, str | None, str | None]:
    """Return what a run continues, what continues it, and the conversation that its spans name."""
    return run.previous_response, run.last_response, run.session_id


def _named(run: Run, turn: _Turn) -> Run:
    """Return a run with the conversation of its turn."""
    return run if run.session_id == turn.session else replace(run, session_id=turn.session)
