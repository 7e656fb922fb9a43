"""`otel-reliability explain`: the meaning of a number, its formula, the data it needs and how to
improve it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from otel_reliability.change.detector import BLIND
from otel_reliability.change.signals import ALL_SIGNALS
from otel_reliability.cli.output import show
from otel_reliability.errors import UnknownMetric
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.passes.summary import TARGETS
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.model.reading import MetricSpec
from otel_reliability.report.changes import MIN_RUNS
from otel_reliability.report.shift import LEVEL
from otel_reliability.report.text import percent
from otel_reliability.telemetry.names import CHANGE_EVIDENCE, CHANGES, PREFIX

OF_TARGETS: Final[Mapping[str, str]] = {
    "reliability.runs": "How many attempts at the task have a known outcome.",
    "reliability.pass_at_k": "100 if any of the attempts at the task passed, else 0.",
    "reliability.passhat_k": (
        "100 · (c/N)^N, cut to a whole number: the estimate that all of N attempts at the "
        "task pass."
    ),
    "reliability.variance_amplification": (
        "How flaky the attempts at the task are: 0 all end alike, 100 half and half."
    ),
    "reliability.graceful_degradation": "100 when every attempt passed; late failures cost most.",
}
"""The targets of one task, in whole percents; in a gate they must hold for every task."""

CHANGE: Final = "change"
CHANGE_NAMES: Final = (
    CHANGE,
    CHANGE_EVIDENCE.name.removeprefix(PREFIX),
    CHANGES.name.removeprefix(PREFIX),
)
"""Topics of change detection: its own name, and those of its OpenTelemetry metrics."""
ABOUT_CHANGE: Final = (
    "Has this agent's behaviour changed? By more than chance, with a bound on the rate of "
    "false alarms."
)

ON_CHANGE: Final[Mapping[str, str]] = {
    "Change": ABOUT_CHANGE,
    "How": (
        f"An agent's first {BLIND} observations are its baseline; an observation is a "
        "run, or a whole session where runs have "
        "one. Each signal of every observation is ranked among those before it, and a "
        "bet is made that ranks stay random; what "
        "all bets that began after the baseline have made of 1 is the evidence."
    ),
    "Signals": "; ".join(f"{name}: {signal.words}" for name, signal in ALL_SIGNALS.items()),
    "Range": "evidence from 0; an alarm is raised at change.runs_per_false_alarm (default 10,000)",
    "Promise": (
        "While the work stays the same mix in random order, a false alarm comes once in "
        "that many observations or less often. "
        "Changed is not worse, and a new mix of tasks is a change, too. In a recording, failures "
        f"alone are tested as well, and shift by chance in at most {percent(LEVEL)} of recordings."
    ),
    "Needs": (
        f"{BLIND} observations as a baseline, and as many after each change; two recordings: "
        f"{MIN_RUNS} complete runs each; failures alone: 10 runs"
    ),
    "What to do": (
        "check the signals it names and the tools whose use shifted; report --since shows "
        "the agent since then"
    ),
    "Source": (
        "Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World; Vovk, Testing "
        "randomness online, 2021"
    ),
    "OpenTelemetry": (
        f"{CHANGE_EVIDENCE.name} (log10, by signal), {CHANGES.name}, log event "
        "agent_reliability.change"
    ),
    "In a gate": (
        "gate FILE --no-change, or gate FILE --no-change --baseline OLD for two recordings"
    ),
    "More": (
        "docs/explanation/validation.md, docs/guides/alerts.md#agentbehaviourchanged, "
        "docs/reference/settings.md#change"
    ),
}


@click.command("explain")
@click.argument("metric", required=False)
def command(metric: str | None) -> None:
    """Explain a metric: its meaning, formula, required data, source, and how to improve it. Without
    METRIC: list all of them.

    \b
      otel-reliability explain path_entropy
      otel-reliability explain reliability.passhat_k
      otel-reliability explain change                   how a change of behaviour is detected
    """
    show(_list if metric is None else lambda console: _one(metric, console))


def _one(metric: str, console: Console) -> None:
    (title, description), *facts = explain(metric)
    console.print(Text.assemble((title, "bold"), f": {description}"))
    console.print()
    table = Table.grid(padding=(0, 2, 0, 0))
    for what, text in facts:
        table.add_row(Text(what, "dim"), Text(text))
    console.print(table)


def _list(console: Console) -> None:
    families: dict[str, dict[str, str]] = {}
    for spec in ALL_SPECS.values():
        families.setdefault(spec.family.capitalize(), {})[spec.name] = spec.description
    for title, numbers in {
        **families,
        "Behaviour": {CHANGE: ABOUT_CHANGE},
        "Targets of a task": OF_TARGETS,
    }.items():
        console.print(Text(title, "bold"))
        table = Table.grid(padding=(0, 2, 0, 2))
        table.add_column(no_wrap=True)
        for name, description in numbers.items():
            table.add_row(Text(name, "cyan"), Text(description))
        console.print(table)


# --- What there is to say of a number -------------------------------------------------------------


def explain(name: str) -> list[tuple[str, str]]:
    """Return (what, text) about one number, by its own name or that of its OpenTelemetry metric.
    Raises `UnknownMetric`.

    >>> explain("agent.reliability.path_entropy")[0]
    ('Path entropy', 'How much the order of tool calls varies from run to run: 0 ...')
    """
    bare = name.strip().removeprefix(PREFIX)
    if bare in CHANGE_NAMES:
        return list(ON_CHANGE.items())
    if bare in OF_TARGETS:
        return list(_target(bare))
    if bare not in ALL_SPECS:
        raise UnknownMetric(bare, (*ALL_SPECS, *TARGETS, *CHANGE_NAMES))
    return list(_metric(ALL_SPECS[bare]))


def _metric(spec: MetricSpec) -> Iterator[tuple[str, str]]:
    yield spec.title, spec.description
    yield "Formula", spec.formula
    low = "any number" if spec.low is None else f"from {spec.low:g}"
    high = "" if spec.high is None else f" to {spec.high:g}"
    good = {"lower": ", lower is better", "higher": ", higher is better", "neutral": ""}[
        spec.direction
    ]
    yield "Range", f"{low}{high}{good}"
    if spec.name in PENALTIES:
        yield "In the score", f"costs up to {PENALTIES[spec.name]:.0f} of the points assessed"
    yield "Needs", spec.required_data
    yield "To improve", spec.improve
    yield "Source", spec.source
    if spec.emitted:
        yield "OpenTelemetry", f"{PREFIX}{spec.name}, unit {spec.unit}, {spec.stability}"
    yield "In a gate", f"--require '{spec.name}{'>=' if spec.direction == 'higher' else '<='}…'"


def _target(name: str) -> Iterator[tuple[str, str]]:
    yield name, OF_TARGETS[name]
    yield (
        "Range",
        "whole numbers from 1" if name == "reliability.runs" else "whole percents from 0 to 100",
    )
    yield (
        "Needs",
        "1 run of the task with a known outcome; without task ids all runs are attempts at one",
    )
    yield "Source", "mcptest, reliability reporting"
    yield "In a gate", f"--require '{name}>=…', for every task; tasks[\"…\"].{name} for one"
