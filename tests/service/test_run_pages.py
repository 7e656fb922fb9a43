"""Whole runs: their list, one of them, two groups side by side, files of them; and changes that
somebody acknowledges.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import RawSpan, Resource
from otel_reliability.testing import span
from tests.real.web import ask
from tests.service.running import Running, run_of, runs_of, serving

ENGINE = {
    "metrics": {"min_runs": 2},
    "change": {"runs_per_false_alarm": 100},
    "ui": {"trace_url": "https://jaeger.example/trace/{trace_id}"},
}
PAGE = "/agents/shop/support"


def made_by(version: str, spans: list[RawSpan]) -> list[RawSpan]:
    """The same spans, of that version of the service, with arguments."""
    resource = Resource.of({"service.name": "shop", "service.version": version})
    arguments = {"gen_ai.tool.call.arguments": "{}"}
    return [
        replace(one, resource=resource, attributes={**one.attributes, **arguments}) for one in spans
    ]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a state directory that was sent 60 runs of one version, then 60 that differ of
    another.
    """
    with serving(ENGINE, state=str(tmp_path_factory.mktemp("state"))) as found:
        found.send(made_by("1.0", runs_of(60, ("search", "book"))))
        found.send(made_by("2.0", runs_of(60, ("pay", "pay", "pay", "mail"), first=100)))
        yield found


def listed(running: Running, query: str = "") -> list[str]:
    return re.findall(
        rf'href="({PAGE}/runs/[^"]+)"', running.get("ui", f"{PAGE}/runs?{query}").text
    )


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("", 120),
        ("version=2.0", 60),
        ("path=search+%E2%86%92+book", 60),
        ("flag=loop", 60),
        ("outcome=success", 0),
        ("flag=nothing&outcome=x&since=soon", 120),
        ("version=2.0&path=search", 0),
        ("until=1970-01-01", 0),
    ],
)
def test_runs_are_listed_and_filtered(running: Running, query: str, number: int) -> None:
    assert len(listed(running, query)) == number


def test_without_a_state_directory_the_last_twenty_runs_are_listed() -> None:
    with serving(ENGINE) as running:
        running.send(runs_of(30))

        assert len(listed(running)) == 20


def test_a_run_has_a_page_with_its_steps(running: Running) -> None:
    first = listed(running, "version=2.0")[0]
    page = running.get("ui", first.replace("&amp;", "&")).text

    assert len(re.findall(r"ok, repeats a call that succeeded", page)) == 2
    assert "2.0" in page
    assert re.search(r'href="https://jaeger.example/trace/[0-9a-f]{32}"', page)
    assert running.get("ui", f"{PAGE}/runs/none").status == 404


def test_two_versions_stand_side_by_side(running: Running) -> None:
    page = running.get("ui", f"{PAGE}/compare").text
    same = running.get("ui", f"{PAGE}/compare?before.version=1.0&after.version=1.0").text
    empty = running.get("ui", f"{PAGE}/compare?before.until=2001-01-01&after.version=1.0").text

    assert re.findall(r'<option value="(\d.0)" selected', page) == ["1.0", "2.0"]
    assert re.search(r"Repeated calls per run</th>.*?>0</td>.*?>2</td>", page)
    assert "more than chance" in page
    assert "better" not in same
    assert "each side needs a run" in empty


def test_runs_and_agents_are_files_for_a_spreadsheet(running: Running) -> None:
    running.send(run_of(500, agent="=cmd()"))
    runs = list(
        csv.DictReader(
            io.StringIO(running.get("ui", f"/api/v1{PAGE}/runs?format=csv&version=2.0").text)
        )
    )
    agents = list(csv.DictReader(io.StringIO(running.get("ui", "/api/v1/agents?format=csv").text)))
    found = json.loads(running.get("ui", f"/api/v1{PAGE}/runs?version=2.0").body)["runs"]

    assert [run["run_id"] for run in runs] == [run["run_id"] for run in found]
    assert {(run["path"], run["fingerprints.version"]) for run in runs} == {
        ("pay → pay → pay → mail", "2.0")
    }
    assert {agent["agent"] for agent in agents} == {"support", "'=cmd()"}


def test_an_export_of_all_times_is_of_all_runs(running: Running) -> None:
    answer = running.get("ui", f"/api/v1{PAGE}/runs?since=0001-01-01&until=9999-12-31")
    assert len(json.loads(answer.text)["runs"]) == 120


def test_a_reason_that_quotes_a_version_of_two_lines_is_one_line() -> None:
    """A status line holds no line break, and a version comes from telemetry."""
    with serving(ENGINE) as running:
        running.send(made_by("one\ntwo", runs_of(3)))
        assert running.get("ui", f"/api/v1{PAGE}/compare?before=one&after=two").status == 400


def test_a_change_is_acknowledged_once_and_stays_so(tmp_path: Path) -> None:
    with serving(ENGINE, state=str(tmp_path)) as running:
        running.send(runs_of(80, ("search", "book")))
        running.send(runs_of(40, ("a", "b", "c", "d", "e"), first=200))
        target = running.url("ui", f"{PAGE}/acknowledge")
        assert ">changed</span>" in running.get("ui", "/").text
        assert "Acknowledge</button>" in running.get("ui", PAGE).text
        assert ask(target, body=b"", headers={"Origin": "https://elsewhere.example"}).status == 403
        own = f"http://{urlsplit(target).netloc}"
        assert ask(target, body=b"", headers={"Origin": own}).status in {200, 303}
        assert "Acknowledged." in running.get("ui", PAGE).text
    with serving(ENGINE, state=str(tmp_path)) as running:
        assert "Acknowledged." in running.get("ui", PAGE).text
        assert ">changed</span>" not in running.get("ui", "/").text


def test_spans_that_no_convention_recognizes_are_shown_with_their_mapping() -> None:
    def odd(trace: int) -> list[RawSpan]:
        kinds = (
            ("agent_run", {"my.kind": "agent", "my.agent.name": "x"}),
            ("look", {"my.kind": "tool", "my.tool": "t"}),
        )
        return [
            span(1 + at, at or None, trace=trace, name=name, scope="my_agents", attributes=facts)
            for at, (name, facts) in enumerate(kinds)
        ]

    with serving() as running:
        running.send([*runs_of(2), *odd(50), *odd(51)])
        page = running.get("ui", "/").text
    with serving(
        {
            "mapping": {
                "spans": [{"kind": "agent", "name": "agent_run"}, {"kind": "tool", "name": "look"}]
            }
        }
    ) as running:
        running.send([*runs_of(2), *odd(50)])
        mapped = running.get("ui", "/").text

    assert "my_agents" in page
    assert "mapping:\n  spans:\n    - kind: &#34;agent&#34;" in page
    assert "no convention recognizes" not in mapped


def test_alerts_lead_to_their_section_of_the_runbook(running: Running) -> None:
    page = running.get("ui", "/alerts").text

    assert '<h2 id="agenttierfell">AgentTierFell</h2>' in page
