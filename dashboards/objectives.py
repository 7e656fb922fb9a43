"""Objectives: how fast an agent uses up its error budget, and what is left of it.

The objective of each agent and its period are gauges, so that these rules are the same in every
installation: an agent without an objective has no series here. Burn rates, windows and shares of
the budget are those of chapter 5 of Google's Site Reliability Workbook ("Alerting on SLOs", table
5-8), for any period: an alert fires when a share of the period's whole budget was used up within
its long window, and the short window shows that this goes on.

Where an objective allows much, no burn rate reaches the limit of a short window: an agent that may
fail 20 % of its runs burns its budget at most five times as fast as allowed. So a limit is never
above `ALL_FAIL`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dashboards.promql import WHO, metric, sample_of, selected
from otel_reliability.telemetry import names

ENOUGH: Final = 10
"""Runs in a long window below which it says nothing: of three runs, one failure is a third."""
ALL_FAIL: Final = 0.8
"""Share of failed runs from which every objective of less is missed, whatever its budget."""
SECONDS: Final = {
    "5m": 300,
    "30m": 1_800,
    "1h": 3_600,
    "2h": 7_200,
    "6h": 21_600,
    "1d": 86_400,
    "3d": 259_200,
}
"""The windows of the alerts."""
LONG: Final = frozenset({"1h", "6h", "1d", "3d"})
"""Those that must hold `ENOUGH` runs."""
PERIOD: Final = "30d"
"""The period of the recorded budget."""
PERIOD_S: Final = 30 * 86_400

_BY: Final = f"{WHO}, signal"
_RUNS: Final = sample_of(names.RUNS)
_ERRORS: Final = sample_of(names.RUN_ERRORS)
_ALLOWED: Final = f"(1 - max by ({_BY}) ({metric('objective')}))"
_PERIOD: Final = f"max by ({_BY}) ({metric('objective_period')})"


def failed_share(over: str, selector: str = "", least: int = 1) -> str:
    """The share of the runs of a while that failed, as the signal of the objective counts them, of
    agents that had at least so many.
    """
    success = _share(f'{_RUNS}{{outcome="failure"}}', "success|failure", over, selector, least)
    errors = _share(_ERRORS, "success|failure|completed", over, selector, least)
    of_signal = f"({_signal(success, 'success')} or {_signal(errors, 'errors')})"
    return f"{of_signal} and on ({_BY}) {_ALLOWED}"


def _share(failed: str, outcomes: str, over: str, selector: str, least: int) -> str:
    known = selected(f'{_RUNS}{{outcome=~"{outcomes}"}}', selector)
    runs = f"sum by ({WHO}) (increase({known}[{over}]))"
    failures = f"sum by ({WHO}) (increase({selected(failed, selector)}[{over}]))"
    return f"{failures} / ({runs} >= {least})"


def _signal(value: str, signal: str) -> str:
    return f'label_replace({value}, "signal", "{signal}", "", "")'


def _shared(over: str) -> str:
    return failed_share(over, least=ENOUGH if over in LONG else 1)


def recorded_share(over: str) -> str:
    """The name under which the failed share of a while is recorded."""
    return f"agent:reliability_failed_share:increase{over}"


def budget_left() -> str:
    """The part of the budget of `PERIOD` that is left, of the agents whose objective has it."""
    of_period = f"({_PERIOD} == {PERIOD_S})"
    used = f"({failed_share(PERIOD)}) / on ({_BY}) {_ALLOWED}"
    return f"(1 - {used}) and on ({_BY}) {of_period}"


def burning(*parts: tuple[str, str, float]) -> str:
    """How much faster than an alert allows the budget burns, where it does: (long window, short
    window, share of the budget that the long one may use).
    """
    return " or ".join(f"({_part(*part)})" for part in parts)


def _part(long: str, short: str, share: float) -> str:
    limit = f"{share} / {SECONDS[long]} * {_PERIOD} * on ({_BY}) {_ALLOWED}"
    capped = f"(({limit} < {ALL_FAIL}) or 0 * {_ALLOWED} + {ALL_FAIL})"
    of_long = f"({_shared(long)}) / on ({_BY}) {capped} > 1"
    of_short = f"({_shared(short)}) / on ({_BY}) {capped} > 1"
    return f"({of_long}) and on ({_BY}) ({of_short})"


FAST: Final = burning(("1h", "5m", 0.02), ("6h", "30m", 0.05))
SLOW: Final = burning(("1d", "2h", 0.1), ("3d", "6h", 0.1))

RECORDED: Final[Mapping[str, str]] = {
    **{recorded_share(over): _shared(over) for over in SECONDS},
    "agent:reliability_allowed_share:max": _ALLOWED,
    "agent:reliability_objective_period:max": _PERIOD,
    f"agent:reliability_error_budget_left:increase{PERIOD}": budget_left(),
}
"""What Prometheus records, so that alerts of many agents stay cheap."""


def by_record(expression: str) -> str:
    """An expression with the names of what is recorded in place of what it takes to compute it.

    >>> by_record(f"({failed_share('5m')}) > 0.5")
    '(agent:reliability_failed_share:increase5m) > 0.5'
    """
    for name, computed in RECORDED.items():
        expression = expression.replace(computed, name)
    return expression
