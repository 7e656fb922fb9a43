"""Every field of a run is shown by one table: as JSON, on its page, and in a list of runs."""

from __future__ import annotations

import json

import pytest

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import Run, RunChange, RunEvent
from otel_reliability.report import run_fields
from otel_reliability.report.json import line
from otel_reliability.report.run_fields import RUN_FIELDS, RunField
from otel_reliability.report.view import AgentView
from otel_reliability.testing import run
from otel_reliability.ui.live import live_view, snapshot
from otel_reliability.ui.rendering import run_page, runs_page
from otel_reliability.ui.runs import RunChoice

SETTINGS = Settings(metrics=MetricSettings(min_runs=2))
ADDED = RunField(
    name="spans",
    value=lambda run: run.span_count,
    about="The number of its spans.",
    title="Spans of the run",
    text=lambda run: f"{run.span_count} spans",
    brief=lambda run: f"made of {run.span_count} spans",
)


def view_of(*runs: Run) -> AgentView:
    engine = Engine(SETTINGS, clock=lambda: 0.0, wall=None)
    engine.receive_events([RunEvent(change=RunChange.CLOSED, run=each) for each in runs])
    source = engine.read(lambda view: snapshot(view, runs[0].key))
    assert source is not None
    return live_view(source, SETTINGS)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_fields, "RUN_FIELDS", (*RUN_FIELDS, ADDED))


@pytest.mark.usefixtures("added")
def test_row_of_table_is_shown_in_json_on_page_and_in_lists() -> None:
    runs = [run(["search"], number, span_count=41) for number in (1, 2)]
    view = view_of(*runs)

    assert json.loads(line(runs[0]))["spans"] == 41
    page = run_page(view, runs[0])
    assert "<dt>Spans of the run</dt><dd>41 spans</dd>" in page
    assert "<span>made of 41 spans</span>" in page
    assert runs_page(view, runs, RunChoice()).count("<span>made of 41 spans</span>") == 2


def test_names_in_page_of_run_are_escaped() -> None:
    runs = [run(["search"], number, task_id="<script>") for number in (1, 2)]
    page = run_page(view_of(*runs), runs[0])

    assert "<script>" not in page.split("<main", 1)[1].split("</main", 1)[0]
    assert "&lt;script&gt;" in page


def test_json_of_runs_follows_the_table_in_its_order() -> None:
    names = [field.name for field in RUN_FIELDS if not field.optional]
    assert list(json.loads(line(run(["search"])))) == names


@pytest.mark.parametrize("field", RUN_FIELDS, ids=[field.name for field in RUN_FIELDS])
def test_every_field_is_described_in_a_sentence(field: RunField) -> None:
    assert field.about.endswith(".")
    assert "|" not in field.about + field.unit


def test_names_of_fields_are_unique() -> None:
    names = [field.name for field in RUN_FIELDS]
    assert len(set(names)) == len(names)
