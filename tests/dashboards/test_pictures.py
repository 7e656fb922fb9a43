"""Pictures of dashboards show what Prometheus answers, all of it, and nothing that an agent's name could smuggle in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.dashboards.asking import BOARDS, ROOT, board, panels
from tests.dashboards.pictures import PICTURES, Shown, page
from tests.real.prometheus.promql import PromQL, Samples
from tests.real.prometheus.promql import Sample as One

EVIL = "<script>alert(1)</script>"


class Canned(PromQL):
    """Answers every question with one series, at ten times; or with none."""

    def __init__(self, labels: dict[str, str] | None) -> None:
        super().__init__("nowhere")
        self._labels = labels

    def query(self, expression: str, *, at: float | None = None) -> Samples:
        return [samples[-1] for samples in self.span(expression, 0, at or 0, 1)]

    def span(self, expression: str, start: float, end: float, step: float) -> Sequence[Samples]:
        if self._labels is None:
            return []
        return [[One(self._labels, 0.5, end - (9 - number) * 100) for number in range(10)]]


def shown(labels: dict[str, str] | None) -> Shown:
    """A dashboard over a quarter of an hour."""
    return Shown(Canned(labels), 0, 900, {})


@pytest.mark.parametrize("name", BOARDS)
def test_every_panel_is_drawn(name: str) -> None:
    """Each title stands there, with a drawing or a table below it."""
    drawn = page(
        name,
        shown(
            {"gen_ai_agent_name": "support", "service_name": "shop", "le": "0.5", "tier": "STABLE", "ceiling": "agents"}
        ),
    )

    assert drawn.count("<section") == len(list(panels(name)))
    assert len(re.findall(r"</h3>(<svg|<table)", drawn)) == len(list(panels(name)))


@pytest.mark.parametrize("name", BOARDS)
def test_no_evidence_is_said(name: str) -> None:
    """Without an answer a panel shows its own words for that, and draws nothing. A table shows its headings."""
    drawn = page(name, shown(None))

    told = [panel for panel in panels(name) if panel["type"] != "table"]
    assert drawn.count('class="none"') == len(told)
    assert "<svg" not in drawn


@pytest.mark.parametrize("name", BOARDS)
def test_names_are_written_not_run(name: str) -> None:
    """An agent may be called whatever it likes."""
    drawn = page(
        name,
        shown(
            dict.fromkeys(("gen_ai_agent_name", "service_name", "disposition", "part", "ceiling", "tier"), EVIL)
            | {"le": "1"}
        ),
    )

    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn


def test_rows_can_be_chosen() -> None:
    """Only these rows, one below the other from the top."""
    drawn = page("agent", shown(None), ["Sessions"])
    tops = [int(found) for found in re.findall(r"top:(\d+)px", drawn)]

    assert re.findall(r"<h2[^>]*>⌄ ([^<]+)</h2>", drawn) == ["Sessions"]
    assert min(tops) == 0


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_stand_in_the_docs(name: str) -> None:
    """Each is there, and its rows are rows of its dashboard."""
    picture = PICTURES[name]

    assert Path(ROOT, "docs", "images", f"dashboard-{name}.png").read_bytes().startswith(b"\x89PNG")
    assert set(picture.rows) <= {panel["title"] for panel in board(picture.board)["panels"] if panel["type"] == "row"}
