"""Self: whether the numbers can be trusted: what was received, used, late and refused, and how near each ceiling is."""

from __future__ import annotations

from dashboards.board import Board, choice, way
from dashboards.own import coming, keeping, workers
from dashboards.promql import sample_of
from otel_reliability.telemetry import names


def board() -> Board:
    """The dashboard."""
    return Board(
        "self",
        "Agents: Self",
        "Whether the numbers can be trusted: what came, what was lost and why, and how near each ceiling is.",
        [coming.well(), coming.coming(), keeping.runs(), keeping.ceilings(), keeping.outgoing(), workers.kafka()],
        [
            choice(
                "instance",
                "Instance",
                f"label_values({sample_of(names.AGENTS)}, instance)",
                "Instances of the service, or processes with our span processor.",
            )
        ],
        (),
        [way("Fleet", "fleet", variables=False)],
    )
