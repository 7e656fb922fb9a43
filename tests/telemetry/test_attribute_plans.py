from __future__ import annotations

from otel_reliability import conventions
from otel_reliability.config import AssemblySettings, MappingSettings, Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.telemetry.attribute_plans import (
    ARGUMENTS,
    MAX_PLANS,
    NAMES_AND_NUMBERS,
    AttributePlan,
    AttributePlans,
)


def reader(settings: Settings | None = None) -> Reader:
    """A reader of every convention."""
    return Reader(settings or Settings(), conventions.TABLE)


def plan_for(*keys: str, settings: Settings | None = None) -> AttributePlan:
    """The plan for a span with these keys."""
    return AttributePlans(reader(settings))[keys]


def test_keys_of_the_user_are_kept() -> None:
    """`reliability.*` by prefix, and the attributes that the settings name."""
    settings = Settings(
        mapping=MappingSettings(task=("ticket",)), agent_key=("tenant",), assembly=AssemblySettings(run_key="job")
    )

    assert plan_for("reliability.branch.refund").keys == ("reliability.branch.refund",)
    assert plan_for("ticket", "tenant", "job", "other", settings=settings).keys == ("ticket", "tenant", "job")


def test_number_of_plans_is_bounded() -> None:
    """A host that invents keys does not fill the memory."""
    plans = AttributePlans(reader())
    plan = plans["gen_ai.tool.name", "a"]
    assert plans["gen_ai.tool.name", "a"] is plan

    for number in range(MAX_PLANS + 10):
        assert plans[(f"key-{number}",)].keys == ()
    assert len(plans) <= MAX_PLANS


def test_tables_hold_keys_that_a_convention_reads() -> None:
    """No key is in both tables."""
    assert reader().wanted.issuperset(NAMES_AND_NUMBERS | ARGUMENTS)
    assert not NAMES_AND_NUMBERS & ARGUMENTS
