from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.model.span import bounded
from otel_reliability.report.view import AgentView, ScorePoint
from otel_reliability.testing import call, run
from otel_reliability.ui.agent_list import TableChoice, line_of_view, list_of
from otel_reliability.ui.live import live_view, snapshot
from otel_reliability.ui.rendering import (
    ACTED_ON,
    CONTENTS,
    STATIC,
    Endpoints,
    agent_page,
    agents_page,
    assets,
    runs_page,
)
from otel_reliability.ui.runs import RunChoice

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
SETTINGS = Settings(metrics=MetricSettings(min_runs=2))


def view_of(*runs: Run) -> AgentView:
    engine = Engine(SETTINGS, clock=lambda: 0.0, wall=None)
    engine.receive_events([RunEvent(RunChange.CLOSED, each, None) for each in runs])
    source = engine.read(lambda view: snapshot(view, runs[0].key))
    assert source is not None
    history = (ScorePoint(10**18, 80.0), ScorePoint(2 * 10**18, 60.0))
    return live_view(source._replace(history=history), SETTINGS)


class Tags(HTMLParser):
    """The tags of a page, with their attributes; and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_others_published_is_here_byte_for_byte() -> None:
    packages: dict[str, Any] = tomllib.loads(
        (STATIC / "vendor" / "sources.toml").read_text(encoding="utf-8")
    )

    for name, package in packages.items():
        folder = STATIC / "vendor" / name
        digests = {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()
        }
        assert digests == package["sha256"]
        assert (
            f"v{package['version']})".encode() in (folder / "uPlot.iife.min.js").read_bytes()[:100]
        )
        assert package["licence"] in (folder / "LICENSE").read_text(encoding="utf-8")


def test_pages_bring_along_what_they_name_and_nothing_else() -> None:
    text = agent_page(view_of(run(["a"], 1), run(["a"], 2)), window="last 100 runs")
    named = re.findall(r'"/static/([^"?]+)\?', text)

    assert sorted(named) == sorted(assets())


@pytest.mark.parametrize(
    "name", [HOSTILE, "x" * 10_000, "\x1b[2J\u202e", "\ud800", "{{ 7 * 7 }}", ""]
)
def test_no_name_can_do_more_than_be_read(name: str) -> None:
    kept = bounded(name)
    key = AgentKey(kept, kept, kept, kept, ((kept or "x", kept),))
    calls = (
        call(name, ok=False),
        call(name, retry=True, chain=1),
        call(name, ok=False, effect=b"1"),
    )
    facts: dict[str, Any] = {
        "key": key,
        "task_id": name or None,
        "branches": ((name, name),),
        "tool_calls": calls,
    }
    view = view_of(
        run([name, name], 1, **facts), run([name], 2, **facts), run(["other"], 3, **facts)
    )
    agents = list_of([line_of_view(view)], TableChoice(text=name, service=name))
    plain = view_of(run(["a", "a"], 1), run(["a"], 2), run(["other"], 3))

    for text in (
        agent_page(view, window="last 100 runs"),
        agents_page(agents, Endpoints(name, name), window="last 100 runs"),
    ):
        tags = Tags(text)
        assert not [
            tag
            for tag, about in tags.found
            if tag == "img" or (tag == "script" and "src" not in about)
        ]
        assert not [
            about
            for _, about in tags.found
            if any(key.startswith("on") or key == "style" for key in about)
        ]
        assert "49" not in re.findall(r"<h1>(.*?)</h1>", text)
        assert not {"\x1b", "\u202e", "\ud800"} & set(tags.text)
        assert len(text) < len(agent_page(plain, window="last 100 runs")) + 60_000


def test_what_has_no_evidence_says_why() -> None:
    view = view_of(run(None, 1), run(None, 2))
    text = agent_page(view, window="last 100 runs")

    assert re.search(r'verdict__number[^>]*">–</span>', text)
    assert 'class="flow"' not in text
    assert "penalty__points" not in text
    assert text.count("not enough data: ") > 10
    assert "the tool calls of no run are observable" in text
    assert "tools not observable" in text


def test_the_waterfall_leads_from_a_hundred_down_to_the_score() -> None:
    view = view_of(
        *(run(path.split(), at) for at, path in enumerate(["a b", "a b", "b", "c a", "a a a"], 1))
    )
    text = agent_page(view, window="last 100 runs")
    parts = [
        tuple(map(float, found))
        for found in re.findall(r'waterfall__cost--\d" x="([\d.]+)" width="([\d.]+)"', text)
    ]

    assert parts
    assert all(
        x + width == pytest.approx(before, abs=0.02)
        for (x, width), before in zip(parts, (100.0, *(x for x, _ in parts)), strict=False)
    )
    assert parts[-1][0] == pytest.approx(
        100.0 - sum(cost.points or 0.0 for cost in view.findings.costs), abs=0.05
    )


@pytest.mark.parametrize(("threshold", "chosen"), [(2, 1), (3, 0)])
def test_retry_explosions_are_filtered_by_the_threshold_that_is_set(
    threshold: int, chosen: int
) -> None:
    chain = tuple(call("pay", ok=False, retry=at > 0, chain=at) for at in range(3))
    every = [run(["pay"] * 3, 1, tool_calls=chain), run(["pay"], 2)]
    view = replace(view_of(*every), retry_threshold=threshold)

    assert f"{chosen} of the last 2 runs kept" in runs_page(
        view, every, RunChoice(flag="retry explosion")
    )


def test_the_page_begins_with_eight_numbers_and_links_to_its_parts() -> None:
    text = agent_page(view_of(run(["a"], 1), run(["a"], 2)), window="last 100 runs")
    first = text[: text.index('aria-label="On this page"')]
    links = re.findall(r'href="#([\w-]+)"', text)

    assert first.count('class="tile"') == len(ACTED_ON) == 8
    assert len(links) >= len(CONTENTS)
    assert all(text.count(f'id="{target}"') == 1 for target in links if target != "main")
    assert not re.search(r"<details[^>]* open", text)
