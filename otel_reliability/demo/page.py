"""What the demo shows: who is unreliable and why, the fleet as it is now, whether every door agrees, and where to look next."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from otel_reliability.demo.agents_table import FleetRow, badge, fleet_table, score
from otel_reliability.demo.agreement import Agreement
from otel_reliability.demo.characters import CHANGE
from otel_reliability.demo.fleet import ROUNDS
from otel_reliability.demo.watch import CHANGED, IN_WORDS, Seen
from otel_reliability.metrics.stability.tiers import Tier
from otel_reliability.report.terminal import INDENT, dim, heading
from otel_reliability.report.text import MINUS, count

PROGRAM: Final = "otel-reliability"
REASONS: Final = 3
"""Reasons that are told of the least reliable agent."""
FEW: Final = 3
"""Commands that are told where the service goes on: there is more to look at then."""
Reasons = Sequence[Mapping[str, Any]]


def fleet(agents: Sequence[Seen]) -> RenderableType:
    """A line for each agent, the least reliable first."""
    return fleet_table([row_of(one) for one in agents])


def so_far(agents: Sequence[Seen], rounds: int) -> RenderableType:
    """The fleet while its first rounds run, beneath what is known of it."""
    worst = _worst(agents)
    told = "Too few runs yet to tell who is unreliable."
    if worst is not None:
        lost = worst.tier is not Tier.STABLE
        told = f"{worst.name} is the least reliable so far." if lost else "All that can be judged so far are stable."
    return Group(
        Text(told, "bold"), dim(f"Round {rounds} of {ROUNDS}: their spans go to the service by OTLP.\n"), fleet(agents)
    )


def verdict(agents: Sequence[Seen], reasons: Reasons) -> RenderableType:
    """Who is unreliable and why, and who else is worth a look."""
    worst = _worst(agents)
    if worst is None:
        return Text("No agent has enough runs to be judged.", "bold")
    parts: list[RenderableType] = [_headline(worst), Padding(_why(reasons), INDENT)]
    others = [line for one in agents if one is not worst for line in _worth_a_look(one)]
    if others:
        table = Table.grid(padding=(0, 2, 0, 0))
        for one, words in others:
            table.add_row(Text(one.name, "bold"), _badge(one), words)
        parts += [Text("Worth a look, too", "bold"), Padding(table, INDENT)]
    return Group(*parts, "")


def agreed(found: Agreement, within: Agreement) -> Text:
    """Whether `/metrics`, the recording and the span processor within the agents' process say the same."""
    if not found.differing and not within.differing:
        return Text(
            f"✓ /metrics, the spans in the file and our span processor within the agents' process agree: "
            f"{found.compared:,} numbers, all equal.",
            "green",
        )
    told = Text("✗ The doors disagree.\n", "bold red")
    for door, each in (("/metrics", found), ("in the process", within)):
        for name, live, recorded in each.differing[:5]:
            told.append(f"  {name}: {door} {live}, recorded {recorded}\n")
    return told


def doors(addresses: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where the running service can be looked at."""
    yield "its page, for people", f"http://{addresses['pages']}/"
    yield "its metrics, for Prometheus", f"http://{addresses['metrics']}/metrics"
    yield "all agents, as JSON", f"http://{addresses['pages']}/api/v1/agents"
    yield "OTLP of your own agents", f"http://{addresses['http']}"


def commands(path: Path, worst: Seen) -> Iterator[tuple[str, str]]:
    """What can be done with the spans in the file, the most telling first."""
    program = _program()
    yield f"{worst.name} in full, from the spans in the file", f"{program} report {path} --agent {worst.name}"
    yield "who changed, since when, and in what", f"{program} change {path}"
    yield "what a number means, and what to do about it", f"{program} explain {worst.dearest or 'score'}"
    yield "triage, only since it changed", f"{program} report {path} --agent triage --window {CHANGE}"
    yield "a gate for CI", f"{program} gate {path} --require 'score>=60'"
    yield "the service for your own agents", f"{program} serve"


def next_steps(addresses: Mapping[str, str] | None, path: Path, worst: Seen) -> RenderableType:
    """Where to look next: at the service, where it goes on, and at the spans in the file."""
    open_doors = Table.grid(padding=(0, 2, 0, 0))
    for what, where in doors(addresses) if addresses is not None else ():
        open_doors.add_row(what, Text(where, "cyan"))
    most = None if addresses is None else FEW
    told = [Text.assemble("  ", what, "\n    ", (how, "cyan")) for what, how in islice(commands(path, worst), most)]
    parts = [Padding(open_doors, INDENT)] if addresses is not None else []
    return Group(heading("Where to look next"), *parts, *told, "")


def live(agents: Sequence[Seen], runs: int, addresses: Mapping[str, str]) -> RenderableType:
    """The fleet as it is now, beneath who is unreliable: in a small terminal the rest has gone up and away."""
    worst = _worst(agents)
    below = Text.assemble(
        (f"Live: {count(runs, 'run')} so far. Ctrl-C ends it and leaves only the file.  ", "dim"),
        (f"http://{addresses['pages']}/", "cyan"),
    )
    return Group(*([_headline(worst)] if worst is not None else ()), fleet(agents), below)


def _worst(agents: Sequence[Seen]) -> Seen | None:
    return next((one for one in agents if one.tier is not None), None)


def _headline(one: Seen) -> Text:
    unreliable = one.tier in {Tier.UNSTABLE, Tier.CRITICAL}
    said = "is unreliable" if unreliable else "is the least reliable"
    because = "" if one.dearest is None else f"\n  {_sentence(IN_WORDS[one.dearest])}"
    return Text.assemble((f"{one.name} {said}", "bold"), "  ", _badge(one), f" {_score(one)}/100", because)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _why(reasons: Reasons) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for reason in [reason for reason in reasons if (reason["points"] or 0) >= 1][:REASONS]:
        table.add_row(f"{MINUS}{reason['points']:.1f}", Text(reason["title"], "bold"), Text(reason["sentence"]))
    return table


def _worth_a_look(one: Seen) -> Iterator[tuple[Seen, str]]:
    if one.changes:
        yield one, f"it has changed: {' and '.join(CHANGED[signal] for signal in one.changes)}"
    elif one.flags or one.tier in {Tier.UNSTABLE, Tier.CRITICAL} or (one.score or 100) < 70:
        yield one, IN_WORDS.get(one.dearest or "", "")
    elif one.tier is None:
        yield one, "it tells too little of itself: nothing can be said of it"


def row_of(one: Seen) -> FleetRow:
    """The agent's line of the table."""
    return FleetRow(
        name=one.name,
        score=one.score,
        runs=one.runs,
        note=one.note,
        hurts=None if one.dearest is None else (one.dearest, one.costs[one.dearest]),
        flagged=bool(one.flags),
        changed_ns=0 if one.changes else None,
    )


def _badge(one: Seen) -> Text:
    return badge(row_of(one))


def _score(one: Seen) -> str:
    return score(row_of(one))


def _program() -> str:
    """How the command line is called here: in an environment that is not active, by its path."""
    script = Path(sys.executable).with_name(PROGRAM)
    if shutil.which(PROGRAM) or not script.exists():
        return PROGRAM
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)
