"""objective, objective_period, error_budget_left: how often must the agent succeed, and how much
failing does that leave?

An objective is set by agent (`objectives`). What it counts as failed is its signal: runs that did
not succeed, of those with a known outcome, or runs that ended in an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_reliability.config import ObjectiveSettings, Settings
from otel_reliability.metrics.base import DEFAULTS, Derived, Series
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading

SUCCESS: Final = "success"
ERRORS: Final = "errors"
RATE_OF: Final = {SUCCESS: "success_rate", ERRORS: "error_rate"}
"""The metric that each signal is about."""


def failed_share(signal: str, readings: Mapping[str, Reading]) -> Reading:
    """Return the share of runs that failed, as the signal counts them.

    >>> failed_share(SUCCESS, {"success_rate": Reading(0.75, 8)})
    Reading(value=0.25, runs=8, parts=(), note='')
    """
    rate = readings[RATE_OF[signal]]
    if rate.value is None:
        return NO_DATA
    return Reading(rate.value if signal == ERRORS else 1.0 - rate.value, rate.runs)


class _OfObjective(Derived):
    """A number about the objective of the window's agent, which the settings of the window name."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._objective: ObjectiveSettings | None = next(iter(settings.objectives), None)

    @property
    def signal(self) -> str:
        """Metric that the objective counts; empty without one."""
        if self._objective is None:
            return ""
        return ERRORS if self._objective.success is None else SUCCESS

    def series(self, readings: Mapping[str, Reading]) -> Series:
        reading = self.derive(readings)
        return () if reading.value is None else (((("signal", self.signal),), reading),)


class Objective(_OfObjective):
    """The least share of runs that must not fail; its signal is in `note`.

    >>> from otel_reliability.config import ObjectiveSettings
    >>> Objective(Settings(objectives=(ObjectiveSettings(success=0.95),))).derive({})
    Reading(value=0.95, runs=0, parts=(), note='success')
    >>> Objective(Settings(objectives=(ObjectiveSettings(errors=0.02),))).derive({})
    Reading(value=0.98, runs=0, parts=(), note='errors')
    >>> Objective().derive({}).value
    """

    spec = MetricSpec(
        name="objective",
        title="Objective",
        family="success",
        direction="neutral",
        description=(
            "The least share of runs that must succeed, or must not end in an error (`signal`)."
        ),
        formula="success, or 1 − errors, of the first of `objectives` that matches the agent",
        required_data="an objective in the settings",
        source="Google, The Site Reliability Workbook, chapter 2",
        improve="Set one that users would notice the miss of, and that the agent can hold.",
    )
    needs = ()

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        found = self._objective
        if found is None:
            return NO_DATA
        least = found.success if found.success is not None else 1.0 - (found.errors or 0.0)
        return Reading(least, 0, note=self.signal)


class ObjectivePeriod(_OfObjective):
    """The period over which the objective is to hold, in seconds."""

    spec = MetricSpec(
        name="objective_period",
        title="Period of the objective",
        family="success",
        unit="s",
        high=None,
        direction="neutral",
        description="The period over which the objective is to hold.",
        formula="period of the first of `objectives` that matches the agent",
        required_data="an objective in the settings",
        source="Google, The Site Reliability Workbook, chapter 2",
        improve="As for the objective.",
    )
    needs = ()

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        return NO_DATA if self._objective is None else Reading(self._objective.period, 0)


class ErrorBudgetLeft(_OfObjective):
    """The part of the failures that the objective allows which the runs of the window have left; 0
    where they are used up, negative beyond.

    >>> from otel_reliability.config import ObjectiveSettings
    >>> budget = ErrorBudgetLeft(Settings(objectives=(ObjectiveSettings(success=0.9),)))
    >>> budget.derive({"success_rate": Reading(0.96, 100)}).value
    0.6
    """

    spec = MetricSpec(
        name="error_budget_left",
        title="Error budget left",
        family="success",
        low=None,
        direction="higher",
        description=(
            "How much of the failures that the objective allows is left in the window; below 0 it "
            "is missed."
        ),
        formula="1 − failed share / (1 − objective)",
        required_data="an objective, and outcomes (or ends in an error)",
        source="Google, The Site Reliability Workbook, chapter 2",
        improve="Stop risky changes while it is used up, and fix what fails most.",
    )
    needs = ("success_rate", "error_rate")

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        found = self._objective
        if found is None:
            return NO_DATA
        allowed = 1.0 - found.success if found.success is not None else found.errors or 0.0
        failed = failed_share(self.signal, readings)
        if failed.value is None:
            return NO_DATA
        return Reading(1.0 - failed.value / allowed, failed.runs)
