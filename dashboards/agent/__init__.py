"""Agent: whether one agent is reliable, why not, and since when."""

from __future__ import annotations

from typing import Any

from dashboards.agent import evidence, standing, work
from dashboards.agent.common import CHOSEN
from dashboards.board import Board, choice, marks, way
from dashboards.promql import metric

CHOICES = (
    ("namespace", "Namespace", "service_namespace", "The namespace of the agent's service."),
    ("environment", "Environment", "deployment_environment_name", "The agent's environment."),
    ("service", "Service", "service_name", "The agent's service."),
    ("agent", "Agent", "gen_ai_agent_name", "The agent that is shown."),
)
"""Variables that name one agent, each among what the ones before leave."""


def board() -> Board:
    """The dashboard."""
    rows = [
        standing.verdict(),
        standing.score(),
        evidence.outcomes(),
        work.usage(),
        work.paths(),
        work.retries(),
        work.context(),
        standing.change(),
        evidence.families(),
        evidence.sessions(),
    ]
    return Board(
        "agent",
        "Agents: Agent",
        "Whether one agent is reliable, why its score fell, and since when.",
        rows,
        list(_variables()),
        marks(CHOSEN, ""),
        [way("Fleet", "fleet")],
    )


def _variables() -> list[Any]:
    runs = metric("window.runs")
    made: list[Any] = []
    chosen = ""
    for name, title, label, about in CHOICES:
        query = (
            f"label_values({runs}{{{chosen}}}, {label})"
            if chosen
            else f"label_values({runs}, {label})"
        )
        made.append(choice(name, title, query, about, several=False))
        chosen += f'{"," if chosen else ""}{label}="${name}"'
    made.append(
        choice(
            "version",
            "Version",
            f"label_values({runs}{{{chosen}}}, service_version)",
            "Where agent_key has service.version: which.",
        )
    )
    made.append(
        choice(
            "window",
            "Window",
            f"label_values({runs}{{{chosen}}}, window)",
            "Where agents have several windows: which.",
            several=False,
        )
    )
    return made
