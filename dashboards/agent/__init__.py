"""Agent: how reliable one agent is, and why its score fell."""

from __future__ import annotations

from dashboards.agent import evidence, standing, work
from dashboards.agent.common import CHOSEN
from dashboards.board import Board, choice, mark, way
from dashboards.promql import metric, newly


def board() -> Board:
    """The dashboard."""
    runs = metric("window.runs")
    rows = [
        standing.verdict(),
        standing.score(),
        standing.change(),
        work.paths(),
        work.retries(),
        work.context(),
        evidence.outcomes(),
        evidence.families(),
        evidence.sessions(),
    ]
    at = 'service_name=~"$service"'
    return Board(
        "agent",
        "Agents: Agent",
        "How reliable one agent is, why its score fell, and whether its behaviour changed.",
        rows,
        [
            choice(
                "service",
                "Service",
                f"label_values({runs}, service_name)",
                "The agent's service.",
                several=False,
            ),
            choice(
                "agent",
                "Agent",
                f"label_values({runs}{{{at}}}, gen_ai_agent_name)",
                "The agent that is shown.",
                several=False,
            ),
            choice(
                "version",
                "Version",
                f'label_values({runs}{{{at},gen_ai_agent_name=~"$agent"}}, service_version)',
                "Where agent_key has service.version: which.",
            ),
            choice(
                "window",
                "Window",
                f"label_values({runs}, window)",
                "Where agents have several windows: which.",
                several=False,
            ),
        ],
        [mark("Behaviour changed", newly("signal", CHOSEN, "5m"), "{{signal}}")],
        [way("Fleet", "fleet", variables=False)],
    )
