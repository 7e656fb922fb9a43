from __future__ import annotations

from otel_reliability import conventions
from otel_reliability.config import AssemblySettings, MappingSettings, Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.telemetry import plans
from otel_reliability.telemetry.plans import ARGUMENTS, PLAIN, Plan, Plans


def reader(settings: Settings | None = None) -> Reader:
    """A reader of every convention."""
    return Reader(settings or Settings(), conventions.TABLE)


def plan_for(*keys: str, settings: Settings | None = None) -> Plan:
    """The plan for a span with these keys."""
    return Plans(reader(settings)).make(keys)


def test_only_what_somebody_reads_is_wanted() -> None:
    """A user's own attributes are not even looked at."""
    plan = plan_for("http.url", "gen_ai.operation.name", "customer.name", "gen_ai.tool.name")

    assert plan.keys == ("gen_ai.operation.name", "gen_ai.tool.name")
    assert plan.get({"http.url": "u", "gen_ai.operation.name": "chat", "gen_ai.tool.name": "t"}) == ("chat", "t")
    assert (plan.arguments, plan.suspects) == ((), ())


def test_one_key_or_none_gives_a_tuple_too() -> None:
    """Whatever their number, values come as a tuple in the order of the keys."""
    assert plan_for("gen_ai.tool.name").get({"gen_ai.tool.name": "t"}) == ("t",)
    assert plan_for("http.url").get({"http.url": "u"}) == ()
    assert plan_for().get({}) == ()


def test_arguments_are_told_from_what_may_be_a_prompt() -> None:
    """A tool's arguments may be held for a while; what may be message text must be read at once, as must the unknown."""
    plan = plan_for(
        "gen_ai.tool.call.arguments", "gen_ai.output.messages", "input.value", "llm.output_messages.0.message.role"
    )

    assert plan.arguments == ("gen_ai.tool.call.arguments",)
    assert plan.suspects == ("gen_ai.output.messages", "input.value", "llm.output_messages.0.message.role")


def test_what_the_user_adds_is_wanted() -> None:
    """`reliability.*` by prefix, and the attributes that the settings name."""
    settings = Settings(
        mapping=MappingSettings(task=("ticket",)), agent_key=("tenant",), assembly=AssemblySettings(run_key="job")
    )

    assert plan_for("reliability.branch.refund").keys == ("reliability.branch.refund",)
    assert plan_for("ticket", "tenant", "job", "other", settings=settings).keys == ("ticket", "tenant", "job")


def test_a_plan_is_made_once_for_a_set_of_keys() -> None:
    """And there is a limit to how many are remembered: hosts that make keys up as they go do not fill the memory."""
    made = Plans(reader())
    plan = made.make(("gen_ai.tool.name", "a"))
    assert made.known["gen_ai.tool.name", "a"] is plan

    for number in range(plans.MAX_PLANS + 10):
        made.make((f"key-{number}",))
    assert len(made.known) <= plans.MAX_PLANS


def test_the_tables_name_keys_that_somebody_reads() -> None:
    """A key that no convention asks for has no business in them, and none is in both."""
    assert reader().wanted.issuperset(PLAIN | ARGUMENTS)
    assert not PLAIN & ARGUMENTS
