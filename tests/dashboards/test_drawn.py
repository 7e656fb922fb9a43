"""What a reader sees: both dashboards, evaluated and drawn from a real Prometheus that holds two
environments, a replica, and an outage with a restart.

`OTEL_RELIABILITY_PICTURES=DIR` keeps the pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.dashboards.drawing import draw, stacked
from tests.dashboards.evaluated import Choice, Evaluated, colour_of, evaluated, rows_of
from tests.dashboards.scene import SCRAPE_S, Scene, large, scene
from tests.demo.fleet import FLEET, SERVICE
from tests.real.components import folder_of
from tests.real.prometheus.handle import Prometheuses, Promtool

pytestmark = pytest.mark.real

SPAN_S: Final = 2700.0
EVERYTHING: Final[Choice] = {}
TABLE: Final = "Agents, the worst first"
NOW: Final = frozenset({"stat", "gauge", "bargauge", "table"})
EMPTY: Final = frozenset(
    {
        "Alerts that fire",
        "Exports per minute",
        "Items beyond a limit, per minute",
        "Messages that are not read yet",
        "Messages that cannot be used, per minute",
        "Open runs against their bounds",
    }
)
"""Panels that the demo has nothing for: no rule is loaded, nothing is pushed or exceeds a limit, no
worker reads from Kafka, and no run is open for long.
"""
MAX_SERIES: Final = 50
MAX_SECONDS: Final = 1.0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One scene for all tests of the file: it takes half a minute."""
    programs = folder_of("prometheus") / "bin"
    folder = tmp_path_factory.mktemp("scene")
    with ExitStack() as running:
        servers = Prometheuses(programs / "prometheus", folder, running)
        yield running.enter_context(scene(servers, Promtool(programs / "promtool"), folder))


def agent(name: str, environment: str = "production") -> Choice:
    return {
        "namespace": "demo",
        "environment": environment,
        "service": SERVICE,
        "agent": name,
        "window": "",
    }


def shown(at: Scene, board: str, chosen: Choice, end: float | None = None) -> Evaluated:
    when = at.now if end is None else end
    return evaluated(at.server, board, chosen, when - SPAN_S, when, SCRAPE_S)


def test_the_worst_agent_stands_in_the_first_row(stage: Scene) -> None:
    panel = shown(stage, "fleet", EVERYTHING).panel(TABLE)
    rows = list(rows_of(panel))

    assert rows[0]["Agent"] == "refunds"
    assert colour_of(panel, "Grade", rows[0]["Grade"]) in {"orange", "red"}
    assert [row["Agent"] for row in rows[-2:]] == ["greeter", "greeter"]
    assert {row["Environment"] for row in rows} == {"production", "staging"}
    assert len({(row["Agent"], row["Environment"]) for row in rows}) == len(rows)


def test_no_panel_is_empty_and_no_legend_doubled(stage: Scene) -> None:
    boards = [
        shown(stage, "fleet", EVERYTHING),
        *(shown(stage, "agent", agent(one.name)) for one in FLEET),
    ]
    titles = {panel.title for board in boards for panel in board.panels}
    full = {panel.title for board in boards for panel in board.panels if panel.series}

    assert titles - full == EMPTY
    for board in boards:
        for panel in board.panels:
            names = [one.name for one in panel.series]
            if panel.kind != "table":
                assert len(set(names)) == len(names), panel.title


def test_score_and_penalties_never_exceed_a_hundred(stage: Scene) -> None:
    for one in FLEET:
        panel = shown(stage, "agent", agent(one.name)).panel(
            "The score, and what each part takes from it"
        )
        tops = [high for line in stacked(panel) for *_, high in line]
        assert all(high < 100.5 for high in tops), one.name


def test_the_rates_of_a_minute_are_what_was_counted(stage: Scene) -> None:
    """Whatever the zoom: the area below the curve is the number of runs."""
    board = shown(stage, "fleet", EVERYTHING)
    panel = board.panel("Runs per minute by outcome")
    counted = sum(row["Runs in this time"] for row in rows_of(board.panel(TABLE)))
    area = sum(
        value * panel.answers[0].step / 60 for one in panel.series for _, value in one.points
    )

    assert area == pytest.approx(counted, rel=0.1)


def test_nothing_is_green_while_the_service_is_down(stage: Scene) -> None:
    for name, chosen in (
        ("fleet", EVERYTHING),
        ("agent", agent("refunds")),
        ("agent", agent("order_desk")),
    ):
        board = shown(stage, name, chosen, stage.down)
        for panel in board.panels:
            if panel.kind in NOW:
                colours = {colour_of(panel, one.name, one.last) for one in panel.series}
                colours.add(colour_of(panel, "", None))
                assert "green" not in colours, panel.title
    ready = shown(stage, "fleet", EVERYTHING, stage.down).panel("Ready instances")

    assert [(one.name, one.last) for one in ready.series] == [("ready", 0), ("in 6 h", 2)]
    assert colour_of(ready, "ready", 0) == "red"


def test_a_change_is_a_line_and_no_block(stage: Scene) -> None:
    changes = shown(stage, "fleet", EVERYTHING).marks["Behaviour changed"]

    assert changes
    for one in changes:
        times = [at for at, _ in one.points]
        assert all(later - sooner > 60 for sooner, later in pairwise(times))


def test_a_large_fleet_is_answered_soon_and_stays_readable(
    prometheus: Prometheuses, promtool: Promtool, tmp_path: Path
) -> None:
    with large(prometheus, promtool, tmp_path) as at:
        for name, chosen in (("fleet", EVERYTHING), ("agent", agent("refunds-07"))):
            board = shown(at, name, chosen)
            for panel in board.panels:
                if panel.kind != "table":
                    assert len(panel.series) <= MAX_SERIES, panel.title
                for answer in panel.answers:
                    assert answer.seconds < MAX_SECONDS, (panel.title, answer.expr)


def test_both_dashboards_are_drawn(stage: Scene, tmp_path: Path) -> None:
    folder = Path(os.environ.get("OTEL_RELIABILITY_PICTURES", tmp_path))
    drawn = {
        "fleet": shown(stage, "fleet", EVERYTHING),
        "fleet-down": shown(stage, "fleet", EVERYTHING, stage.down),
        "agent": shown(stage, "agent", agent("refunds")),
    }
    chromium = folder_of("chromium") / "bin" / "chromium"
    for name, board in drawn.items():
        draw(board, chromium, folder / f"{name}.png")

        assert (folder / f"{name}.png").stat().st_size > 50_000
