"""The table of agents: a line each, filtered, sorted and cut into pages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from otel_reliability.change.result import Result
from otel_reliability.metrics.stability.tier import Tier, tier_of
from otel_reliability.metrics.success.verdict import Verdict, assess, fails_now
from otel_reliability.model.reading import Reading
from otel_reliability.model.run import AgentKey
from otel_reliability.report.findings import MANY_FAILED_CALLS, Ask, short_reason
from otel_reliability.report.findings import MIN_POINTS as SHOWN_POINTS
from otel_reliability.report.text import agent_name, clean, count, listed, percent, place
from otel_reliability.report.view import AgentView, ReadingView, ScorePoint
from otel_reliability.report.words import badness, in_a_row
from otel_reliability.windows.agents import AgentState

PER_PAGE: Final = 50
MAX_SERVICES: Final = 200
"""Services in the filter; the text filter finds the others."""
UNNAMED: Final = "_"
"""Replacement in an address for a name that no address can hold."""
UNADDRESSABLE: Final = frozenset({"", ".", ".."})
MIN_POINTS: Final = 1.0
"""Points from which a penalty is named."""


class Penalty(NamedTuple):
    """The largest penalty of a score: its name (None: no part costs `MIN_POINTS`), the points, a
    sentence.
    """

    name: str | None
    points: float
    sentence: str


class AgentLine(NamedTuple):
    """One agent in the table. `note` says why there is no score; `last_ns` is when its last run
    ended; `success`, `errors` and `cost` are the readings of its success rate, its error rate and
    its cost per run.
    """

    key: AgentKey
    runs: int
    last_ns: int
    history: Sequence[ScorePoint]
    changed: bool
    verdict: Verdict
    grade: Tier | None
    success: Reading | ReadingView
    errors: Reading | ReadingView
    cost: Reading | ReadingView
    score: float | None
    coverage: float | None
    note: str
    penalty: Penalty
    flags: Sequence[str] = ()

    @property
    def tier(self) -> Tier | None:
        return None if self.score is None else tier_of(self.score)

    @property
    def trend(self) -> float:
        """The last score of its curve less the first."""
        return self.history[-1].score - self.history[0].score if self.history else 0.0


def address(key: AgentKey, page: str = "", **query: str) -> str:
    """Return the address of an agent, or of a page below it.

    >>> address(AgentKey("", "shop", "prod", "a/b"), "/runs", flag="loop")
    '/agents/shop/a%2Fb/runs?id=31f2e792a3&flag=loop'
    """
    names = (key.service_name, key.agent)
    parts = (
        UNNAMED if name in UNADDRESSABLE else quote(name, safe="", errors="replace")
        for name in names
    )
    chosen = {name: value for name, value in query.items() if value}
    address = urlencode({"id": id_of(key), **chosen}, errors="replace")
    return f"/agents/{'/'.join(parts)}{page}?{address}"


def line_of(
    state: AgentState, history: Sequence[ScorePoint], *, changed: bool = False
) -> AgentLine:
    """Return the line of an agent, within the engine's turn. Perturbed runs are not counted: pages
    show them apart.
    """
    window = state.first_window
    costs = {name: cost.points for name, cost in window.penalties().items()}
    scored = _scored(window.reading, costs)
    runs = round(window.reading("window.runs").value or 0)
    return AgentLine(state.key, runs, state.last_run_ns or 0, history, changed, **scored)


def line_of_view(agent: AgentView) -> AgentLine:
    """Return the line of an agent of a report."""
    changed = agent.change is not None and agent.change.result is Result.CHANGED
    costs = {cost.name: cost.points for cost in agent.findings.costs if cost.points is not None}
    scored = _scored(agent.metrics.__getitem__, costs)
    return AgentLine(agent.key, agent.runs, agent.end, agent.history, changed, **scored)


def _scored(ask: Ask, costs: Mapping[str, float]) -> dict[str, Any]:
    assessment = assess(ask)
    return {
        "verdict": assessment.verdict,
        "grade": assessment.grade,
        "success": ask("success_rate"),
        "errors": ask("error_rate"),
        "cost": ask("cost_per_run"),
        "score": ask("score").value,
        "coverage": ask("score_coverage").value,
        "note": ask("score").note,
        "penalty": top_penalty(ask, costs),
        "flags": tuple(ask("flag").parts),
    }


def top_penalty(ask: Ask, costs: Mapping[str, float]) -> Penalty:
    """Return the largest penalty, from readings alone; where no part costs a point, or there is no
    score, what goes wrong beside it: runs that fail, calls that fail. That the agent fails now
    precedes it.

    `costs` are the points that each part with data lowers the score by.

    >>> from otel_reliability.model.reading import Reading
    >>> readings = {"token_budget_pressure": Reading(0.9, 9), "failed_in_a_row": Reading(0, 9)}
    >>> readings["score"] = Reading(82.0, 9)
    >>> top_penalty(readings.__getitem__, {"token_budget_pressure": 18.0}).sentence
    'The context window is 90 % full on average.'
    """
    if fails_now(ask):
        return Penalty(None, 0.0, f"Fails now: {in_a_row(ask('failed_in_a_row'))}.")
    score = ask("score")
    name = None if score.value is None else max(costs, key=costs.__getitem__, default=None)
    if name is None:
        return Penalty(None, 0.0, _not_in_the_score(ask) or f"No score: {short(score.note)}.")
    if costs[name] < MIN_POINTS:
        return Penalty(None, costs[name], _not_in_the_score(ask) or _without_loss(costs[name]))
    return Penalty(name, costs[name], short_reason(name, ask))


def _not_in_the_score(ask: Ask) -> str:
    """Return what goes wrong without lowering the score; empty where that is nothing.

    >>> readings = {"success_rate": Reading(0.5, 40), "error_rate": Reading(0.0, 40)}
    >>> readings["failed_run_share"] = Reading(0.5, 40)
    >>> _not_in_the_score(readings.__getitem__)
    '50 % of 40 runs failed.'
    """
    success = ask("success_rate")
    errors = ask("error_rate")
    known = ask("failed_run_share")
    failed = (known.value or 0.0) if success.value is None else 1.0 - success.value
    if failed > (errors.value or 0.0):
        runs = known.runs if success.value is None else success.runs
        return f"{percent(failed)} of {count(runs, 'run')} failed."
    if errors.value:
        return f"{percent(errors.value)} of {count(errors.runs, 'run')} ended in an error."
    failed_calls = ask("failed_call_share").value or 0.0
    if failed_calls >= MANY_FAILED_CALLS:
        return f"{percent(failed_calls)} of the tool calls failed."
    return ""


def _without_loss(points: float) -> str:
    if points < SHOWN_POINTS:
        return "No points lost."
    return "No part lowers the score by a whole point."


def short(note: str) -> str:
    """Return why there is no score, in few words.

    >>> short("no data for path_entropy, tool_variance, retry_explosion")
    'not enough data for path entropy, tool variance and 1 more'
    """
    start, lacking, parts = note.partition("no data for ")
    if start or not lacking:
        return note
    return "not enough data for " + listed(parts.replace("_", " ").split(", "), 2)


def id_of(key: AgentKey) -> str:
    """Return a short name for an agent: the same in every process.

    >>> id_of(AgentKey("", "shop", "prod", "support"))
    'a2163e024a'
    """
    text = repr(tuple(key)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=5).hexdigest()


class TableChoice(NamedTuple):
    """The filters, the order and the page of the table that the user chose."""

    text: str = ""
    service: str = ""
    verdict: str = ""
    sort: str = "verdict"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> TableChoice:
        """Read an address. Invalid values are ignored.

        >>> TableChoice.of({"q": "desk", "verdict": "stable", "sort": "colour", "page": "x"})
        TableChoice(text='desk', service='', verdict='stable', sort='verdict', page=1)
        """
        page = query.get("page", "")
        verdict = query.get("verdict", "")
        sort = query.get("sort", "")
        return cls(
            text=query.get("q", "").strip()[:200],
            service=query.get("service", "")[:300],
            verdict=verdict if verdict in VERDICTS else "",
            sort=sort if sort in SORTS else "verdict",
            page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 7 else 1,
        )

    @property
    def filtered(self) -> bool:
        return bool(self.text or self.service or self.verdict)

    def address(self, **changes: Any) -> str:
        """Return the address of the table with something else chosen; the page is kept only where
        nothing else changes.

        >>> (
        ...     TableChoice(verdict="stable", page=3).address(page=4),
        ...     TableChoice(page=3).address(verdict="stable"),
        ...     TableChoice().address(),
        ... )
        ('/?verdict=stable&page=4', '/?verdict=stable', '/')
        """
        new = self._replace(**{"page": 1, **changes})
        parts = {"q": new.text, "service": new.service, "verdict": new.verdict}
        parts |= {
            "sort": "" if new.sort == "verdict" else new.sort,
            "page": "" if new.page <= 1 else str(new.page),
        }
        query = urlencode({name: value for name, value in parts.items() if value}, errors="replace")
        return f"/?{query}" if query else "/"


VERDICTS: Final = tuple(verdict.value for verdict in Verdict)

SORTS: Final[Mapping[str, tuple[str, Callable[[AgentLine], Any]]]] = {
    "verdict": (
        "worst verdict",
        lambda line: badness(line.verdict.value, line.grade and line.grade.name, line.score),
    ),
    "success": (
        "lowest success",
        lambda line: (line.success.value is None, line.success.value or 0.0),
    ),
    "errors": ("most errors", lambda line: -(line.errors.value or 0.0)),
    "score": ("lowest score", lambda line: (line.score is None, line.score or 0.0)),
    "best": ("highest score", lambda line: (line.score is None, -(line.score or 0.0))),
    "trend": ("largest fall", lambda line: line.trend),
    "name": ("name", lambda line: agent_name(line.key).casefold()),
    "runs": ("most runs", lambda line: -line.runs),
    "last": ("latest run", lambda line: -line.last_ns),
}
"""The orders of the table: name in words, sort key. Equal agents are sorted by key."""


class VerdictCount(NamedTuple):
    """The agents of a verdict, and how many of them fail so often that their grade is worse."""

    verdict: str
    agents: int
    worse: int


class BarPart(NamedTuple):
    """The agents of a colour as part of a bar: start and width in percent."""

    colour: str
    start: float
    width: float


class AgentList(NamedTuple):
    """A page of the table. `total` counts all agents, `found` those that were chosen."""

    lines: Sequence[AgentLine]
    total: int
    found: int
    pages: int
    choice: TableChoice
    verdicts: Sequence[VerdictCount]
    bar: Sequence[BarPart]
    services: Sequence[str]


def list_of(lines: Sequence[AgentLine], choice: TableChoice) -> AgentList:
    """Return the chosen page of the table; the last one, where there are fewer."""
    found = [line for line in lines if _is_chosen(line, choice)]
    found.sort(key=lambda line: (SORTS[choice.sort][1](line), line.key))
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(choice.page, pages)
    return AgentList(
        lines=found[(page - 1) * PER_PAGE : page * PER_PAGE],
        total=len(lines),
        found=len(found),
        pages=pages,
        choice=choice._replace(page=page),
        verdicts=verdict_counts(lines),
        bar=bar_of(lines),
        services=sorted({line.key.service_name for line in lines if line.key.service_name})[
            :MAX_SERVICES
        ],
    )


def verdict_counts(lines: Iterable[AgentLine]) -> list[VerdictCount]:
    """Return how many agents have each verdict, the worst first, those without one last."""
    counts = Counter[str]()
    worse = Counter[str]()
    for line in lines:
        counts[line.verdict.value] += 1
        worse[line.verdict.value] += line.grade not in {None, line.tier or Tier.STABLE}
    worse[Verdict.FAILING.value] = 0  # the word says it
    return [VerdictCount(verdict, counts[verdict], worse[verdict]) for verdict in VERDICTS]


def bar_of(lines: Iterable[AgentLine]) -> list[BarPart]:
    """Return the agents by the colour of their grade, in which the table shows them, the worst
    first, those without one last.
    """
    counts = Counter(line.grade for line in lines)
    total = counts.total() or 1
    start = 0.0
    found = list[BarPart]()
    for grade in (*reversed(Tier), None):
        if counts[grade]:
            width = 100 * counts[grade] / total
            colour = "none" if grade is None else grade.name.lower()
            found.append(BarPart(colour, round(start, 2), round(width, 2)))
            start += width
    return found


def _is_chosen(line: AgentLine, choice: TableChoice) -> bool:
    text = f"{line.key.agent}\n{place(line.key)}\n{clean(line.key.service_name)}".casefold()
    return (
        choice.service in {"", line.key.service_name}
        and choice.verdict in {"", line.verdict.value}
        and choice.text.casefold() in text
    )
