"""The fleet as a running service tells it: who is worth what, and what hurts most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from otel_reliability.demo.fleet import NAMESPACE, SERVICE
from otel_reliability.demo.scrape import Samples, ask, scrape, series_of
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.tiers import Tier
from otel_reliability.service.addresses import Place
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES

IN_WORDS: Final[Mapping[str, str]] = {
    "path_entropy": "it hardly ever does the same work in the same order",
    "tool_variance": "it takes other tools each time it does the same work",
    "retry_explosion": "it repeats calls that fail, again and again",
    "branch_instability": "it decides differently although the input is alike",
    "token_budget_pressure": "its context window is nearly full",
}
"""What each part of a score comes to, said of an agent that it costs most."""

CHANGED: Final[Mapping[str, str]] = {
    "path": "the steps it takes",
    "calls": "how many tools it calls",
    "failed_calls": "how many of its calls fail",
    "output_tokens": "how much it writes",
    "reply_tokens": "how long its answers are",
    "largest_input": "how much it reads at once",
    "outcome": "how its runs end",
}
"""What each signal of a change is about."""


class Seen(NamedTuple):
    """One agent: its line of the API, and from `/metrics` what each part costs, and by which signals it has changed."""

    name: str
    runs: int
    score: float | None
    tier: Tier | None
    note: str
    costs: Mapping[str, float]
    flags: tuple[str, ...]
    changes: tuple[str, ...]

    @property
    def dearest(self) -> str | None:
        """The part that costs most; None: none costs anything."""
        return max((name for name, cost in self.costs.items() if cost >= 1), key=self.costs.__getitem__, default=None)


class Watch:
    """Looks at a service over HTTP."""

    def __init__(self, addresses: Mapping[str, Place]) -> None:
        self.metrics, self.pages = str(addresses["metrics"]), str(addresses["pages"])

    def numbers(self) -> Samples:
        """What Prometheus would read now."""
        return scrape(self.metrics)

    def look(self) -> list[Seen]:
        """All agents, the least reliable first; those without a score last."""
        numbers = self.numbers()
        lines: list[dict[str, Any]] = ask(self.pages, "/api/v1/agents")["agents"]
        seen = (_seen(line, numbers) for line in lines if line["service"] == SERVICE)
        return sorted(seen, key=lambda one: (one.score is None, one.score or 0.0, one.name))

    def reasons(self, agent: str) -> list[dict[str, Any]]:
        """Why an agent has the score it has, the dearest reason first."""
        found: list[dict[str, Any]] = ask(self.pages, f"/api/v1/agents/{SERVICE}/{agent}")["agents"]
        return found[0]["findings"]["reasons"]


def _seen(line: Mapping[str, Any], numbers: Samples) -> Seen:
    of = dict(_of_agent(line["agent"], numbers))
    costs = {name: points * of[name, ""] for name, points in PENALTIES.items() if (name, "") in of}
    flags = tuple(which for (name, which), value in of.items() if name == "flag" and value)
    changes = tuple(which for (name, which), value in of.items() if name == "changes" and value)
    tier = None if line["tier"] is None else Tier[line["tier"]]
    return Seen(line["agent"], line["runs"], line["score"], tier, line["score_note"] or "", costs, flags, changes)


def _of_agent(agent: str, numbers: Samples) -> Iterator[tuple[tuple[str, str], float]]:
    """The numbers of one agent that are shown, by metric and by what else tells them apart."""
    whose = {("gen_ai_agent_name", agent), ("service_name", SERVICE), ("service_namespace", NAMESPACE)}
    for (series, labels), value in numbers.items():
        if series in _SHOWN and whose <= labels:
            rest = [text for key, text in labels if key in {"flag", "signal"}]
            yield (_SHOWN[series], "".join(rest)), value


_SHOWN: Final = {
    **{series_of(GAUGES[FULL_NAMES[name]], {})[0]: name for name in (*PENALTIES, "flag")},
    series_of(names.CHANGES, {})[0]: "changes",
}
