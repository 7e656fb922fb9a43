"""A fleet as a table in a terminal: a line for each agent, the least reliable first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from otel_reliability.metrics.stability.tiers import Tier, rounded, tier_of
from otel_reliability.report.groups import ALL_SPECS
from otel_reliability.report.spark import history as course
from otel_reliability.report.terminal import COLOURS, columns, dim
from otel_reliability.report.text import ABSENT, MINUS, count

SECOND: Final = 1_000_000_000
SIZES: Final = (("d", 86_400), ("h", 3_600), ("min", 60))
NO_SCORE: Final = "no score"


class FleetRow(NamedTuple):
    """One agent. `note` says why there is no score; `hurts` is the part that costs most, and its points.

    `changed_ns`: when a change was last noticed, 0 where it is not known when; None: never. `course`: its score, the oldest
    first.
    """

    name: str
    score: float | None
    runs: int
    note: str = ""
    hurts: tuple[str, float] | None = None
    flagged: bool = False
    changed_ns: int | None = None
    course: Sequence[float] = ()
    last_ns: int | None = None
    place: str = ""

    @property
    def tier(self) -> Tier | None:
        """The grade of its score."""
        return None if self.score is None else tier_of(self.score)


def worst_first(rows: Iterable[FleetRow]) -> list[FleetRow]:
    """By score, the lowest first; those without one last."""
    return sorted(rows, key=lambda row: (row.score is None, row.score or 0.0, row.name, row.place))


def fleet_table(rows: Sequence[FleetRow], now_ns: int | None = None, most: int | None = None) -> RenderableType:
    """The rows in their order, at most so many of them. Columns of which nothing is known are left out.

    Whose name several agents have stands with its place. With `now_ns`, the Unix time, it is told how long ago things were.
    """
    shown = rows[:most]
    names = Counter(row.name for row in rows)
    courses = any(course(row.course) for row in shown)
    table = columns(
        "Agents",
        "",
        "what hurts most",
        *(("course",) if courses else ()),
        "score",
        "runs",
        *(("last run",) if now_ns is not None else ()),
        numbers=3 if now_ns is not None else 2,
    )
    for row in shown:
        table.add_row(
            _name(row, alone=names[row.name] == 1),
            badge(row),
            _hurts(row, now_ns),
            *((course(row.course),) if courses else ()),
            score(row),
            f"{row.runs:,}",
            *((ago(now_ns, row.last_ns),) if now_ns is not None else ()),
        )
    more = len(rows) - len(shown)
    return Group(table, dim(f"and {count(more, 'more agent')}")) if more else table


def tiers(rows: Sequence[FleetRow]) -> Text:
    """How many agents there are of each tier, the worst first.

    >>> tiers([FleetRow("a", 97.0, 9), FleetRow("b", 41.0, 9), FleetRow("c", None, 1)]).plain
    '3 agents: 🟠 1 UNSTABLE, 🟢 1 STABLE, 1 no score'
    """
    found = Counter(row.tier for row in rows)
    told = Text.assemble((count(len(rows), "agent"), "bold"), ": ")
    parts = [
        Text(f"{tier.sign} {found[tier]:,} {tier.name}", COLOURS[tier]) for tier in reversed(Tier) if found[tier]
    ] + ([dim(f"{found[None]:,} {NO_SCORE}")] if found[None] else [])
    return told.append_text(Text(", ").join(parts))


def badge(row: FleetRow) -> Text:
    """The tier, with a mark where a flag is set."""
    if row.tier is None:
        return dim(NO_SCORE)
    told = Text(f"{row.tier.sign} {row.tier.name}", COLOURS[row.tier])
    return told.append(" ⚠", "yellow") if row.flagged else told


def score(row: FleetRow) -> str:
    """The score as people see it."""
    return ABSENT if row.score is None else str(rounded(row.score))


def ago(now_ns: int, then_ns: int | None) -> str:
    """How long ago something was, no more exactly than needed.

    >>> [ago(90_000 * SECOND, then * SECOND) for then in (90_003, 89_985, 89_700, 80_000, 0)]
    ['now', '15 s ago', '5 min ago', '2 h ago', '1 d ago']
    >>> ago(0, None)
    '–'
    """
    if then_ns is None:
        return ABSENT
    seconds = (now_ns - then_ns) // SECOND
    if seconds < 1:
        return "now"
    for unit, size in SIZES:
        if seconds >= size:
            return f"{seconds // size:,} {unit} ago"
    return f"{seconds} s ago"


def _name(row: FleetRow, *, alone: bool) -> Text:
    return Text.assemble((row.name, "bold"), *([] if alone or not row.place else [("  " + row.place, "dim")]))


def _hurts(row: FleetRow, now_ns: int | None) -> Text:
    changed = Text(_changed(row, now_ns), "bold")
    if row.tier is None:
        return changed.append("no evidence" if row.note.startswith("no evidence") else row.note, "dim")
    if row.hurts is None:
        return changed.append("nothing", "dim")
    name, points = row.hurts
    return changed.append(f"{ALL_SPECS[name].title} {MINUS}{points:.1f}")


def _changed(row: FleetRow, now_ns: int | None) -> str:
    if row.changed_ns is None:
        return ""
    when = f" {ago(now_ns, row.changed_ns)}" if now_ns is not None and row.changed_ns else ""
    return f"changed{when} · "
