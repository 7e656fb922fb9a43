"""Agents that are loaded from their stored final runs after a restart go on as if nothing had
happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from hypothesis import given
from msgspec.structs import replace

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.windows.agents import MAX_POSTPONED, AgentRegistry
from tests.windows.runs import KEY, closed, final, histories, revised, run, state_of

SETTINGS = Settings(
    windows=(
        WindowSettings("recent", last=4),
        WindowSettings("while", last=9, period=6e-9),
        WindowSettings("period", period=15e-9),
    )
)


def apply(registry: AgentRegistry, events: Sequence[RunEvent]) -> AgentRegistry:
    for second, event in enumerate(events):
        registry.apply(event, float(second))
    return registry


def stored(events: Sequence[RunEvent]) -> tuple[list[Run], list[Run]]:
    """The final runs, in the order in which they became so, and those that may still change, in the
    order of closing.
    """
    final = list[Run]()
    open_runs = dict[str, Run]()
    for event in events:
        one = event.run
        open_runs.pop(one.run_id, None)
        if event.change is RunChange.FINAL:
            final.append(one)
        elif event.change is not RunChange.WITHDRAWN:
            open_runs[one.run_id] = one
    return final, list(open_runs.values())


def restarted(registry: AgentRegistry, events: Sequence[RunEvent]) -> AgentRegistry:
    final, open_runs = stored(events)
    other = AgentRegistry(SETTINGS)
    agents = dict[AgentKey, list[Run]]()
    for one in final:
        agents.setdefault(one.key, []).append(one)
    other.restore_runs(
        {
            key: (registry.seen(key) or 0.0, partial(tuple[Run, ...], runs))
            for key, runs in agents.items()
        }
    )
    return apply(other, [closed(one) for one in open_runs])


@given(before=histories(), after=histories(most=4))
def test_readings_after_a_restart_are_those_before(
    before: list[RunEvent], after: list[RunEvent]
) -> None:
    registry = apply(AgentRegistry(SETTINGS), before)
    other = restarted(registry, before)
    assert values(other) == values(registry)

    there = {event.run.run_id for event in before}
    more = [event for event in after if event.run.run_id not in there]
    assert values(apply(other, more)) == values(apply(registry, more))


def values(registry: AgentRegistry) -> list[object]:
    agents = {key: registry.agent(key) for key in sorted(registry.keys())}
    return [
        (
            key,
            window.name,
            [(replace(row, path=None), row.path and row.path.names) for row in window.rows()],
            window.readings(),
            window.spares,
            list(found.recent),
        )
        for key, found in agents.items()
        if found is not None
        for window in found.windows.values()
    ]


def lived() -> AgentRegistry:
    one = run("a", 1, "search")
    events = [closed(one), final(one)]
    return restarted(apply(AgentRegistry(SETTINGS), events), events)


def test_an_agent_whose_reading_failed_is_read_again() -> None:
    failing = [OSError("damaged")]
    one = run("a", 1, "search")

    def read() -> Iterator[Run]:
        yield one
        if failing:
            raise failing.pop()

    registry = AgentRegistry(SETTINGS)
    registry.restore_runs({KEY: (0.0, read)})
    with pytest.raises(OSError, match="damaged"):
        registry.agent(KEY)
    assert (registry.unloaded, registry.is_loaded(KEY)) == (1, False)

    assert [row.run_id for row in state_of(registry).windows["recent"].rows()] == ["a"]
    assert (registry.unloaded, registry.is_loaded(KEY)) == (0, True)


def test_an_agent_is_loaded_when_it_is_read() -> None:
    registry = lived()
    assert (registry.unloaded, len(registry), registry.keys()) == (1, 1, [KEY])
    assert registry.counted_as(KEY) == KEY
    for _ in range(2):
        deque(registry.load_next(), maxlen=0)
    assert registry.unloaded == 0
    assert [row.run_id for row in state_of(registry).windows["recent"].rows()] == ["a"]
    assert registry.accounts == {}


def test_a_run_that_closes_does_not_load_its_agent() -> None:
    registry = lived()
    one = run("b", 2, "book")
    apply(registry, [closed(one), final(one)])
    assert (registry.unloaded, registry.seen(KEY)) == (1, 0.0)
    assert [row.run_id for row in state_of(registry).windows["recent"].rows()] == ["a", "b"]


def test_an_agent_that_expires_before_it_is_loaded_is_forgotten() -> None:
    registry = lived()
    assert registry.advance(2 * SETTINGS.limits.agent_idle) == [KEY]
    assert (registry.unloaded, len(registry), registry.seen(KEY)) == (0, 0, None)

    registry.apply(closed(run("b", 2)), 0.0)
    assert [row.run_id for row in state_of(registry).windows["recent"].rows()] == ["b"]


def test_an_agent_with_many_waiting_runs_is_loaded() -> None:
    registry = lived()
    for number in range(2, 2 + MAX_POSTPONED):
        one = run(f"b{number:03}", number, "book")
        apply(registry, [closed(one), final(one)])
    assert registry.unloaded == 0
    assert [row.run_id for row in state_of(registry).windows["recent"].rows()][
        -1
    ] == f"b{1 + MAX_POSTPONED:03}"


def test_a_run_that_every_window_dropped_is_revised_until_it_is_final() -> None:
    registry = AgentRegistry(Settings(windows=(WindowSettings("period", period=15e-9),)))
    early = run("early", 0)
    for one in (early, run("much later", 40)):
        apply(registry, [closed(one), final(one)] if one.end_ns else [closed(one)])
    assert [one.run_id for one in state_of(registry).windows["period"].rows()] == ["much later"]

    apply(registry, [revised(replace(early, end_ns=41, cost=1.0), early)])
    assert [(one.run_id, one.cost) for one in state_of(registry).recent] == [
        ("much later", None),
        ("early", 1.0),
    ]
    for window in state_of(registry).windows.values():
        assert [row.run_id for row in window.rows()][-1] == "early"


def test_a_run_that_became_final_before_its_agent_was_loaded_is_final() -> None:
    registry = lived()
    one = run("b", 2, "book")
    apply(registry, [closed(one), final(one), revised(replace(one, cost=1.0), one)])
    assert state_of(registry).is_final("b")
