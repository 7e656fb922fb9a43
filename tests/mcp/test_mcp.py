"""The MCP server, asked by the official client over standard input and over HTTP, about recordings
and about a service.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver import MCPServer
from msgspec.structs import replace

from otel_reliability.cli.app import app
from otel_reliability.errors import ReliabilityError
from otel_reliability.mcp import RunningService
from otel_reliability.model.span import RawSpan, Resource
from otel_reliability.recording import Recording
from otel_reliability.report.build import report_of
from otel_reliability.report.json import plain
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.real.ports import HOST, free_port
from tests.real.waiting import until
from tests.real.web import answers
from tests.report.build import runs
from tests.service.running import Running, runs_of, serving

TOOLS: Final = {
    "list_agents",
    "explain_score",
    "unusual_runs",
    "which_requests_go_wrong",
    "why_runs_fail",
    "what_changed",
    "compare_versions",
    "check_target",
}
STEADY: Final = ("search book",) * 9
SPANS: Final = runs(*STEADY, "pay") + runs(
    *("search book", "pay search") * 5, first=20, agent="clerk"
)
VERSIONS: Final = [("1.0", "search book")] * 10 + [
    ("2.0", path) for path in ("pay", "search pay book") * 5
]
ENV: Final = {**os.environ, "PYTHONPATH": str(Path.cwd())}


@pytest.fixture(scope="module", name="file")
def file_of(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_otlp(tmp_path_factory.mktemp("mcp") / "spans.jsonl", SPANS)


@pytest.fixture(scope="module", name="service")
def service_of() -> Iterator[Running]:
    with serving({"metrics": {"min_runs": 2}}) as found:
        paths = (("search", "book"), ("search", "book"), ("pay",))
        found.send(
            one
            for at, path in enumerate(paths, 1)
            for one in runs_of(3, path, "support", first=10 * at)
        )
        yield found


def versioned(number: int, version: str, path: str) -> list[RawSpan]:
    resource = Resource.of({"service.name": "shop", "service.version": version})
    return [replace(span, resource=resource) for span in runs(path, first=number)]


Call: TypeAlias = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


def command(*args: object) -> list[str]:
    return ["-m", "otel_reliability.cli", "mcp", *map(str, args)]


def asked(server: Any, *calls: Call) -> list[Any]:
    async def ask() -> list[Any]:
        async with Client(server) as client:
            found = [await client.call_tool(name, dict(args)) for name, args in calls]
        return [one.content[0].text if one.is_error else one.structured_content for one in found]  # type: ignore[union-attr]

    return asyncio.run(ask())


def by_stdio(*args: object) -> Any:
    return stdio_client(StdioServerParameters(command=sys.executable, args=command(*args), env=ENV))


def in_process(*args: object) -> MCPServer:
    """The server that the command would run. A process of its own takes a second to begin."""
    made: list[MCPServer] = []

    def keep(server: MCPServer) -> None:
        made.append(server)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MCPServer, "run", keep)
        app.main(["mcp", *map(str, args)], standalone_mode=False)
    return made[0]


def test_tools_only_read_and_describe_themselves(file: Path) -> None:
    async def ask() -> list[Any]:
        async with Client(in_process(file)) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(ask())

    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)


def test_answers_are_those_of_the_report(file: Path) -> None:
    recording = Recording()
    recording.read(file)
    clerk, support = plain(report_of(recording.close()))["agents"]

    listed, explained, unusual, changed = asked(
        in_process(file),
        ("list_agents", {}),
        ("explain_score", {"agent": "clerk"}),
        ("unusual_runs", {"agent": "support"}),
        ("what_changed", {"agent": "*"}),
    )

    assert [line["agent"] for line in listed["agents"]] == ["clerk", "support"]
    assert all(
        listed["agents"][0][name] == clerk[name]
        for name in ("runs", "score", "score_coverage", "tier", "flags")
    )
    [agent] = explained["agents"]
    assert agent["interval"] == clerk["metrics"]["score"]
    assert agent["score_coverage"] == clerk["score_coverage"]
    assert [part["name"] for part in agent["parts"]] == [
        cost["name"] for cost in clerk["findings"]["costs"]
    ]
    assert all(part.items() >= clerk["metrics"][part["name"]].items() for part in agent["parts"])
    assert agent["reasons"] == clerk["findings"]["reasons"]
    assert unusual["agents"][0]["runs_unlike_others"] == support["findings"]["runs_unlike_others"]
    assert unusual["agents"][0]["runs_unlike_others"][0]["trace_id"]
    assert {one["agent"]: one["change"]["verdict"] for one in changed["agents"]} == {
        "clerk": "no result",
        "support": "no result",
    }


def test_two_recordings_are_compared(file: Path, tmp_path: Path) -> None:
    old = write_otlp(tmp_path / "old.jsonl", runs(*STEADY))

    support, clerk = asked(
        in_process("--baseline", old, file),
        ("compare_versions", {"agent": "support"}),
        ("compare_versions", {"agent": "clerk"}),
    )

    score = support["agents"][0]["metrics"]["score"]
    assert (score["before"]["runs"], score["after"]["runs"], score["verdict"]) == (9, 10, "worse")
    assert "more_than_chance" in score
    assert "no run of this agent" in clerk


def test_two_versions_are_compared(tmp_path: Path) -> None:
    spans = [span for number, each in enumerate(VERSIONS, 1) for span in versioned(number, *each)]
    calls: list[Call] = [
        ("compare_versions", {"agent": "support", "before": "1.0", "after": "2.0"}),
        ("compare_versions", {"agent": "support", "before": "1.0", "after": "3.0"}),
    ]

    recorded, unknown = asked(in_process(write_otlp(tmp_path / "spans.jsonl", spans)), *calls)
    with serving({"metrics": {"min_runs": 2}}) as service:
        service.send(spans)
        served, _ = asked(in_process("--url", service.url("ui")), *calls)

    [agent] = recorded["agents"]
    entropy = agent["metrics"]["path_entropy"]
    assert (entropy["before"]["runs"], entropy["after"]["runs"], entropy["before"]["value"]) == (
        10,
        10,
        0.0,
    )
    assert (entropy["verdict"], entropy["more_than_chance"]) == ("worse", False)
    assert served["agents"][0]["metrics"].keys() == agent["metrics"].keys()
    assert served["agents"][0]["metrics"]["path_entropy"] == entropy
    assert "'3.0' is not a version of these runs; the nearest are 2.0, 1.0" in unknown


def test_target_is_checked_as_by_the_gate(file: Path) -> None:
    held, failed, few = asked(
        in_process(file),
        ("check_target", {"agent": "support", "target": "retry_explosion<=0"}),
        ("check_target", {"agent": "support", "target": "score>100"}),
        ("check_target", {"agent": "support", "target": "score>=1", "min_runs": 50}),
    )

    states = [found["agents"][0]["verdicts"][0]["state"] for found in (held, failed, few)]
    assert states == ["held", "failed", "missing"]
    assert failed["agents"][0]["verdicts"][0]["runs"] == 10


def test_errors_say_what_to_do(file: Path) -> None:
    wrong_agent, wrong_metric, no_baseline, listed = asked(
        in_process(file),
        ("explain_score", {"agent": "suport"}),
        ("check_target", {"agent": "support", "target": "scor>=80"}),
        ("compare_versions", {"agent": "support"}),
        ("list_agents", {"name": "cl*"}),
    )

    assert "the nearest is support" in wrong_agent
    assert "Did you mean score?" in wrong_metric
    assert "--baseline" in no_baseline
    assert listed["total"] == 1


def test_a_recording_that_grows_is_read_again(tmp_path: Path) -> None:
    file = write_otlp(tmp_path / "spans.jsonl", runs(*STEADY))

    async def ask() -> list[int]:
        found: list[int] = []
        async with Client(in_process(file)) as client:
            for spans in ((), runs("search", first=50)):
                with file.open("a", encoding="utf-8") as out:
                    out.write(write_otlp(tmp_path / "more.jsonl", spans).read_text())
                answer: Any = (await client.call_tool("list_agents", {})).structured_content
                found.append(answer["agents"][0]["runs"])
        return found

    assert asyncio.run(ask()) == [9, 10]


def test_server_answers_over_http(file: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, *command("--http", f"{HOST}:{port}", file)], env=ENV
    ) as process:
        try:
            until(lambda: answers(f"http://{HOST}:{port}/", 404), "the server listens")
            calls: list[Call] = [("list_agents", {}), ("explain_score", {"agent": "*"})]
            assert asked(f"http://{HOST}:{port}/mcp", *calls) == asked(by_stdio(file), *calls)
        finally:
            process.terminate()


def test_service_answers_through_its_api(service: Running) -> None:
    api = json.loads(service.get("ui", "/api/v1/agents/shop/support").body)["agents"][0]

    listed, explained, unusual, changed, checked, wrong = asked(
        in_process("--url", service.url("ui")),
        ("list_agents", {}),
        ("explain_score", {"agent": "shop/support"}),
        ("unusual_runs", {"agent": "support"}),
        ("what_changed", {"agent": "support"}),
        ("check_target", {"agent": "support", "target": "score>=0"}),
        ("check_target", {"agent": "support", "target": "scor>=0"}),
    )

    [line] = listed["agents"]
    assert (line["runs"], line["score_coverage"]) == (9, api["score_coverage"])
    assert explained["agents"][0]["interval"] == api["metrics"]["score"]
    assert unusual["agents"][0]["runs_unlike_others"] == api["findings"]["runs_unlike_others"]
    assert changed["agents"][0]["change"] == api["change"]
    assert checked["agents"][0]["verdicts"][0]["state"] == "held"
    assert "Did you mean score?" in wrong


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "name recordings"),
        (("-",), "name recordings"),
        (("--url", "http://127.0.0.1:1", "spans.jsonl"), "name recordings"),
        (("--http", "0.0.0.0:8765", "FILE"), "an address that only this machine reaches"),
        (("--http", "nowhere", "FILE"), "an address that only this machine reaches"),
    ],
)
def test_bad_usage_is_refused(
    file: Path, args: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "mcp", *(file if arg == "FILE" else arg for arg in args))

    assert done.code == 2
    assert message in done.err


def test_an_address_that_is_no_service_is_named() -> None:
    with pytest.raises(ReliabilityError, match="does not answer as the service does"):
        RunningService("http://127.0.0.1:no-port", None).lines()
