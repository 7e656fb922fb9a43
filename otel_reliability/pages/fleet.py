"""The table of agents: a line each, chosen, sorted and cut into pages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from otel_reliability.metrics.stability.tiers import Tier, rounded, tier_of
from otel_reliability.model.run import AgentKey
from otel_reliability.pages.course import Point
from otel_reliability.pages.hurts import Hurt, hurt_of
from otel_reliability.pages.spark import Curve, curve
from otel_reliability.report.text import agent_name, clean, listed, place
from otel_reliability.windows.agent import AgentState

PER_PAGE: Final = 50
MOST_SERVICES: Final = 200
"""Services that the choice of one names; beyond, the text filter finds them."""
UNSCORED: Final = "none"
"""The tier of agents without a score."""
NOBODY: Final = "_"
"""What stands in an address for a name that no address can hold."""
UNSPEAKABLE: Final = frozenset({"", ".", ".."})


class AgentLine(NamedTuple):
    """One agent in the table. `id` tells it from others of its service and name. `last_ns` is when its last run ended."""

    key: AgentKey
    id: str
    name: str
    place: str
    score: float | None
    note: str
    runs: int
    hurt: Hurt
    last_ns: int
    points: Sequence[Point]
    changed: bool

    @property
    def tier(self) -> Tier | None:
        """The grade of its score."""
        return None if self.score is None else tier_of(self.score)

    @property
    def shown(self) -> str:
        """Its score as people see it."""
        return "–" if self.score is None else str(rounded(self.score))

    @property
    def curve(self) -> Curve | None:
        """How its score went."""
        return curve(self.points)

    @property
    def trend(self) -> float:
        """The last score of its curve less the first."""
        return self.points[-1].score - self.points[0].score if self.points else 0.0

    @property
    def path(self) -> str:
        """The address of its page."""
        names = (self.key.service_name, self.key.agent)
        parts = (NOBODY if name in UNSPEAKABLE else quote(name, safe="", errors="replace") for name in names)
        return f"/agents/{'/'.join(parts)}?id={self.id}"


def line_of(state: AgentState, points: Sequence[Point], *, changed: bool = False) -> AgentLine:
    """The line of an agent, within the engine's turn."""
    window = state.first_window
    score = window.reading("score")
    return AgentLine(
        key=state.key,
        id=id_of(state.key),
        name=agent_name(state.key),
        place=place(state.key),
        score=score.value,
        note=short(score.note),
        runs=window.runs,
        hurt=hurt_of(window.reading),
        last_ns=state.last_run_ns or 0,
        points=points,
        changed=changed,
    )


def short(note: str) -> str:
    """Why there is no score, in few words.

    >>> (
    ...     short("4 of the 5 runs that a score needs"),
    ...     short("no evidence for path_entropy, tool_variance, retry_explosion"),
    ... )
    ('4 of the 5 runs that a score needs', 'no evidence for path entropy, tool variance and 1 more')
    """
    start, lacking, parts = note.partition("no evidence for ")
    return note if start or not lacking else lacking + listed(parts.replace("_", " ").split(", "), 2)


def id_of(key: AgentKey) -> str:
    """A short name for an agent: the same in every process.

    >>> id_of(AgentKey("", "shop", "prod", "support"))
    'a2163e024a'
    """
    text = repr(tuple(key)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=5).hexdigest()


class Choice(NamedTuple):
    """What of the table somebody wants to see."""

    text: str = ""
    service: str = ""
    tier: str = ""
    sort: str = "score"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """As an address has it. What makes no sense is left out.

        >>> Choice.of({"q": "desk", "tier": "STABLE", "sort": "colour", "page": "x"})
        Choice(text='desk', service='', tier='STABLE', sort='score', page=1)
        """
        page = query.get("page", "")
        tier, sort = query.get("tier", ""), query.get("sort", "")
        return cls(
            text=query.get("q", "").strip()[:200],
            service=query.get("service", "")[:300],
            tier=tier if tier in TIERS else "",
            sort=sort if sort in SORTS else "score",
            page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 7 else 1,
        )

    @property
    def filtered(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.text or self.service or self.tier)

    def address(self, **changes: Any) -> str:
        """The address of the table with something else chosen; a page is kept only where nothing else changes.

        >>> Choice(tier="STABLE", page=3).address(page=4), Choice(page=3).address(tier="STABLE"), Choice().address()
        ('/?tier=STABLE&page=4', '/?tier=STABLE', '/')
        """
        new = self._replace(**{"page": 1, **changes})
        parts = {"q": new.text, "service": new.service, "tier": new.tier}
        parts |= {"sort": "" if new.sort == "score" else new.sort, "page": "" if new.page <= 1 else str(new.page)}
        query = urlencode({name: value for name, value in parts.items() if value}, errors="replace")
        return f"/?{query}" if query else "/"


TIERS: Final = (*(tier.name for tier in Tier), UNSCORED)

SORTS: Final[Mapping[str, Callable[[AgentLine], Any]]] = {
    "score": lambda line: (line.score is None, line.score or 0.0),
    "best": lambda line: (line.score is None, -(line.score or 0.0)),
    "name": lambda line: line.name.casefold(),
    "trend": lambda line: line.trend,
    "runs": lambda line: -line.runs,
    "last": lambda line: -line.last_ns,
}
"""By what the table can be sorted; of equals, by key."""


class TierCount(NamedTuple):
    """How many agents have a tier, and from which place of a bar to which they reach, in hundredths of it."""

    tier: str
    agents: int
    start: float
    width: float


class Fleet(NamedTuple):
    """A page of the table. `total` counts all agents, `found` those that were chosen."""

    lines: Sequence[AgentLine]
    total: int
    found: int
    pages: int
    choice: Choice
    tiers: Sequence[TierCount]
    services: Sequence[str]


def fleet_of(lines: Sequence[AgentLine], choice: Choice, per_page: int = PER_PAGE) -> Fleet:
    """The page of the table that was chosen; the last one, where there are fewer."""
    found = [line for line in lines if _is_chosen(line, choice)]
    found.sort(key=lambda line: (SORTS[choice.sort](line), line.key))
    pages = max(1, -(-len(found) // per_page))
    page = min(choice.page, pages)
    return Fleet(
        lines=found[(page - 1) * per_page : page * per_page],
        total=len(lines),
        found=len(found),
        pages=pages,
        choice=choice._replace(page=page),
        tiers=tier_counts(lines),
        services=sorted({line.key.service_name for line in lines if line.key.service_name})[:MOST_SERVICES],
    )


def tier_counts(lines: Iterable[AgentLine]) -> list[TierCount]:
    """How many agents have each tier, the best first; those without a score last."""
    counts = Counter(UNSCORED if line.tier is None else line.tier.name for line in lines)
    total, start, found = counts.total() or 1, 0.0, list[TierCount]()
    for tier in TIERS:
        width = 100 * counts[tier] / total
        found.append(TierCount(tier, counts[tier], round(start, 2), round(width, 2)))
        start += width
    return found


def _is_chosen(line: AgentLine, choice: Choice) -> bool:
    tier = UNSCORED if line.tier is None else line.tier.name
    return (
        choice.service in {"", line.key.service_name}
        and choice.tier in {"", tier}
        and choice.text.casefold() in _text(line)
    )


def _text(line: AgentLine) -> str:
    return f"{line.key.agent}\n{line.place}\n{clean(line.key.service_name)}".casefold()
