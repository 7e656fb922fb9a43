"""Agents that are Python functions, and services that run already."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from otel_reliability.experiments.faults import VARIABLE, Faults
from otel_reliability.experiments.journal import read_results
from tests.cli.command_line import call
from tests.experiments.test_experiment import Bench, bench
from tests.real.ports import HOST, free_port

__all__ = ["bench"]

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "experiment"
MODULE: Final = """
from opentelemetry import trace


def answer(text):
    tracer = trace.get_tracer("agent")
    names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "function"}
    with tracer.start_as_current_span("invoke_agent", attributes=names):
        return text.upper()


async def later(text):
    return answer(text)
"""


class Service(BaseHTTPRequestHandler):
    """An agent behind HTTP, which exports its spans a little after its answer."""

    receiver: str
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _, trace_id, above, _ = self.headers["traceparent"].split("-")
        answer = body["message"].upper().encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        threading.Timer(0.2, self.export, (trace_id, above)).start()

    def export(self, trace_id: str, above: str) -> None:
        now = time.time_ns()
        names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "service"}
        span = {
            "traceId": trace_id,
            "spanId": secrets.token_hex(8),
            "parentSpanId": above,
            "name": "invoke_agent",
            "startTimeUnixNano": str(now - 1000),
            "endTimeUnixNano": str(now),
            "attributes": [
                {"key": key, "value": {"stringValue": value}} for key, value in names.items()
            ],
        }
        request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        urllib.request.urlopen(
            urllib.request.Request(
                f"http://{self.receiver}/v1/traces",
                json.dumps(request).encode(),
                {"Content-Type": "application/json"},
            )
        ).close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""


@contextmanager
def serving(status: int = 200) -> Generator[tuple[str, str]]:
    """Start a service; give its URL, and the address that it exports to."""
    receiver = f"{HOST}:{free_port()}"
    handler = type("Handler", (Service,), {"receiver": receiver, "status": status})
    server = ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/chat", receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


BODY: Final = '{"message": "{input}"}'


def test_service_is_asked_by_post_and_its_spans_belong_to_the_attempt(bench: Bench) -> None:
    with serving() as (url, receiver):
        code, found = bench.result(
            *("--repeat", 2, "--post", url, "--body", BODY, "--listen", receiver), command=[]
        )

    assert (code, found["attempts"]) == (0, 4)
    runs = bench.runs
    assert sorted((run.task_id, run.trial, run.key.agent) for run in runs) == [
        ("a", 0, "service"),
        ("a", 1, "service"),
        ("b", 0, "service"),
        ("b", 1, "service"),
    ]
    assert {one.success for one in read_results(bench.out)} == {True}


def test_answer_with_an_error_status_is_a_failure(bench: Bench) -> None:
    with serving(500) as (url, receiver):
        _, found = bench.result(
            *("--repeat", 1, "--post", url, "--body", BODY, "--listen", receiver), command=[]
        )

    assert {(one.success, one.error) for one in read_results(bench.out)} == {(False, True)}
    assert any("answered 500" in note for note in found["notes"])


def test_service_that_does_not_listen_is_bad_usage(bench: Bench) -> None:
    url = f"http://{HOST}:{free_port()}/chat"

    done = bench.run("--post", url, "--listen", f"{HOST}:{free_port()}", command=[])

    assert done.code == 2
    assert url in done.err


@pytest.mark.parametrize("function", ["answer", "later"])
def test_function_is_called_in_a_process_of_its_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    (bench.folder / "shop.py").write_text(MODULE)
    monkeypatch.chdir(bench.folder)

    done = bench.run("--repeat", 1, "--call", f"shop:{function}", command=[])

    assert done.code == 0, done.err
    assert sorted((run.task_id, run.key.agent) for run in bench.runs) == [
        ("a", "function"),
        ("b", "function"),
    ]
    assert {one.success for one in read_results(bench.out)} == {True}


def test_function_that_is_not_there_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.folder)

    done = bench.run("--repeat", 1, "--call", "shop:answer", command=[])

    assert "No module named 'shop'" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "one of -- COMMAND, --call and --post"),
        (("--call", "a:b", "--post", "http://x"), "one of -- COMMAND, --call and --post"),
        (("--call", "shop"), "package.module:function"),
        (("--post", "chat"), "an HTTP address"),
        (("--post", "http://x", "--header", "none"), "NAME: VALUE"),
        (("--post", "http://x", "--fault", "tools:0.1"), "started for each attempt"),
        (("--post", "http://x", "--jobs", "2"), "1 with --post"),
        (("--post", "http://x", "--listen", "here"), "HOST:PORT"),
    ],
)
def test_wrong_agents_are_named(bench: Bench, options: tuple[str, ...], said: str) -> None:
    done = bench.run(*options, command=[])

    assert done.code == 2
    assert said in done.err
    assert not bench.out.exists()


def test_command_writes_the_other_forms_of_the_input(bench: Bench) -> None:
    writer = bench.folder / "writer.py"
    writer.write_text(
        "import json, sys\ngiven = json.load(sys.stdin)\n"
        "print('please ' + given['input'])\nprint(json.dumps('now\\n' + given['input']))\n"
    )

    done = bench.run("--repeat", 2, "--vary-with", f"{sys.executable} {writer}")

    assert "prompt of task a: please hello" in done.err
    assert "prompt of task a: now hello" in done.err
    conditions = {one.condition for one in read_results(bench.out)}
    assert conditions == {"baseline", "prompt"}


def test_command_that_writes_no_form_is_bad_usage(bench: Bench) -> None:
    done = bench.run("--vary-with", f"{sys.executable} -c pass")

    assert done.code == 2
    assert "another form of the input" in done.err


def test_http_proxy_fails_the_share_of_tool_calls_that_is_asked_for(tmp_path: Path) -> None:
    """The agent counts errors of an MCP server that never fails; other messages pass."""
    counts = tmp_path / "calls"
    counts.touch()
    port = free_port()
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    with mcp_server() as url:
        proxied = f"http://{HOST}:{port}/mcp"
        done = subprocess_of(url, port, [sys.executable, str(agent), proxied], counts)

    found = json.loads(done)
    assert found["listed"] == "tools/list"
    assert found["session"] == "7"
    assert 25 <= found["errors"] <= 75
    assert counts.read_text().count(".") == 100


@pytest.mark.parametrize(("tries", "low", "high"), [(1, 0.1, 0.9), (9, 1.0, 1.0)])
def test_report_shows_the_robustness_of_an_agent_behind_the_http_proxy(
    tries: int, low: float, high: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that calls again keeps its accuracy; one that does not loses about the rate of faults."""
    agent, tasks, out = (tmp_path / name for name in ("client.py", "tasks.jsonl", "out.jsonl"))
    agent.write_text(CLIENT)
    tasks.write_text(json.dumps({"id": "a", "input": "x", "expect": "tools/call"}))
    address = f"{HOST}:{free_port()}"
    options = ("--out", out, "--name", "client", "--jobs", "1", "--repeat", "3")
    faults = ("--fault", "tools:0.5", "--fault-kind", "error")
    with mcp_server() as url:
        proxy = ("-m", "otel_reliability.cli", "fault-proxy", "--url", url, "--listen", address)
        command = (sys.executable, agent, f"http://{address}/mcp", tries)
        program = map(str, (sys.executable, *proxy, "--", *command))
        done = call(capsys, "experiment", tasks, *options, *faults, "--", *program)

    assert done.code == 0, done.err
    report = call(capsys, "report", out, "--format", "json", "--no-intervals")
    [found] = json.loads(report.out)["agents"]
    assert low <= found["metrics"]["fault_robustness"]["value"] <= high


CLIENT: Final = """
import json, sys, urllib.request

body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}).encode()
headers = {"Content-Type": "application/json"}
for number in range(int(sys.argv[2])):
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, headers)) as answer:
        found = json.load(answer)["result"]
    if not found.get("isError"):
        print(found["method"])
        break
"""

AGENT: Final = """
import json, sys, urllib.request

def send(method, id):
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method}).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, headers)) as answer:
        return json.load(answer), answer.headers.get("Mcp-Session-Id")

listed, session = send("tools/list", 0)
calls = [send("tools/call", n)[0] for n in range(100)]
errors = sum(one["result"].get("isError", False) for one in calls)
print(json.dumps({"listed": listed["result"]["method"], "session": session, "errors": errors}))
"""


class Mcp(BaseHTTPRequestHandler):
    """An MCP server over HTTP that answers every message."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = {"jsonrpc": "2.0", "id": message["id"], "result": {"method": message["method"]}}
        body = json.dumps(result).encode()
        self.send_response(200)
        self.send_header("Mcp-Session-Id", "7")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""


@contextmanager
def mcp_server() -> Generator[str]:
    server = ThreadingHTTPServer((HOST, 0), Mcp)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def subprocess_of(url: str, port: int, agent: list[str], counts: Path) -> str:
    """Return what an agent prints that is started by the proxy, half of whose calls fail."""
    command = [sys.executable, "-m", "otel_reliability.cli", "fault-proxy", "--url", url]
    options = ["--listen", f"{HOST}:{port}", "--", *agent]
    env = {**os.environ, VARIABLE: Faults(0.5, "seed", ("error",), str(counts)).encoded()}
    done = subprocess.run(
        [*command, *options], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_example_does_what_its_first_lines_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLE.parents[1])
    out = tmp_path / "out.jsonl"
    agent = ["--call", "examples.experiment.orders:answer"]
    options = ["--out", out, *agent, "--repeat", 1, "--fault", "tools:0.3", "--vary", "prompt"]

    done = call(capsys, "experiment", EXAMPLE / "tasks.jsonl", "--format", "json", *options)

    assert done.code == 0, done.err
    assert json.loads(done.out)["attempts"] == 3 * 3
    told = (EXAMPLE / "orders.py").read_text()
    assert "experiment examples/experiment/tasks.jsonl" in told
    assert " ".join(agent) in told
