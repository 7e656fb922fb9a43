from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability import metrics
from otel_reliability.config import LimitSettings, Settings, WindowSettings
from otel_reliability.model.run import AgentKey, Outcome
from otel_reliability.telemetry import names
from otel_reliability.telemetry.ledger import BUDGET, WIDEST, ToolLedger, fitting
from otel_reliability.testing import row
from tests.windows.windows import window_over


def key(number: int) -> AgentKey:
    """One of many agents."""
    return AgentKey("", "shop", "", f"agent-{number}")


def windows(number: int) -> tuple[WindowSettings, ...]:
    """So many windows."""
    return tuple(WindowSettings(f"window-{at}", last=10) for at in range(number))


@given(st.integers(1, 2_000), st.integers(1, 40))
def test_no_gauge_can_pass_the_budget(agents: int, number: int) -> None:
    """Whatever the settings say: agents × windows × series of the widest instrument stay within it."""
    fitted = fitting(Settings(windows=windows(number), limits=LimitSettings(agents=agents)))

    assert 1 <= fitted.limits.agents <= agents
    assert (fitted.limits.agents + 1) * number * WIDEST <= BUDGET
    assert (fitted.limits.agents + 1) * len(fitted.change.signals) <= BUDGET


def test_the_widest_instrument_is_as_wide_as_is_said() -> None:
    """No metric emits more series an agent and window, and no counter more an agent, than the limit reckons with."""
    full = window_over(
        [row(["search", "read"], number, task="task", outcome=Outcome.SUCCESS) for number in range(1, 40)]
    )
    emitted = [spec.name for spec, _, _ in full.series()]

    assert max(emitted.count(name) for name in set(emitted)) <= WIDEST
    assert len(Outcome) <= WIDEST
    assert sum(spec.emitted for spec in metrics.ALL_SPECS) == len(names.gauges()) - 4


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=400), st.integers(1, 20), st.integers(1, 400)
)
def test_tools_keep_the_first_places_and_the_rest_is_other(
    asked: list[tuple[int, int]], tools: int, agents: int
) -> None:
    """The first that fit keep their names for ever; two sets a tool and two of `__other__` an agent fit the budget."""
    settings = fitting(Settings(limits=LimitSettings(agents=agents, tools=tools)))
    ledger = ToolLedger(settings)
    named: dict[tuple[int, int], str] = {}
    for agent, tool in asked:
        name = ledger.name(key(agent), f"tool-{tool}")
        assert named.setdefault((agent, tool), name) == name
        assert name in {f"tool-{tool}", names.OTHER}

    own = [pair for pair, name in named.items() if name != names.OTHER]
    assert 2 * len(own) + 2 * (settings.limits.agents + 1) <= BUDGET
    assert all(sum(agent == other for other, _ in own) <= tools for agent, _ in own)
    (limit,) = ledger.limits()
    assert limit.used == len(own) <= limit.limit
    assert limit.hits == sum(named[pair] == names.OTHER for pair in asked)
