"""The demo as it is shown: which agent is unreliable and why, and that nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from otel_reliability.demo.hosting import configured, living
from otel_reliability.demo.replay import RECORDING, Endpoint, Replay
from otel_reliability.demo.show import CHANGED_AT, CLOSED_AFTER_S, read
from otel_reliability.model.span import RawSpan
from otel_reliability.service.service import Service
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import SECOND, FakeClock
from tests.demo.fleet import CHANGE, CHARACTERS
from tests.demo.recording import recorded
from tests.real.process import untraced
from tests.real.waiting import until
from tests.service.running import Running, serving

DEMO = (sys.executable, "-m", "otel_reliability.cli", "demo")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The demo with `--once`, and the folder it ran in, which also was its place for temporary
    files.
    """
    folder = tmp_path_factory.mktemp("demo")
    env = {**os.environ, "TMPDIR": str(folder), "COLUMNS": "100"}
    return subprocess.run(
        (*DEMO, "--once"),
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    ), folder


def test_it_opens_with_who_is_unreliable_and_why(
    once: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, _ = once
    first, words, *rest = done.stdout.splitlines()

    assert re.fullmatch(
        r"refunds fails more often than it succeeds  🔴 failing \d\d/100", first.rstrip()
    )
    assert words.strip() == "21 % of its runs succeed."
    assert "Branch instability" in rest[0]
    assert "triage" in done.stdout
    assert "its behaviour changed: " in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_every_agent_has_its_line(once: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    done, _ = once
    (greeter,) = re.findall(r"^greeter .*not enough data.*$", done.stdout, re.MULTILINE)

    assert "–" in greeter
    assert all(re.search(rf"^{name} .*\d+\s*$", done.stdout, re.MULTILINE) for name in CHARACTERS)


def test_the_verdicts_at_the_start_are_those_of_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever part of the recording was repeated last; half a minute lies between two rounds."""
    clock = FakeClock()
    ticks = count(clock.wall() - 3_600 * SECOND, 30 * SECOND)
    paced = SimpleNamespace(time_ns=lambda: next(ticks), monotonic=clock)
    monkeypatch.setattr("otel_reliability.demo.replay.time", paced)
    service = Service(configured(str(tmp_path)), env={}, clock=clock, wall=clock.wall)
    found: list[dict[str, str]] = []
    with living(service):
        until(lambda: not service.readiness.reasons, "the service to be ready")
        replay = Replay(Endpoint(f"http://{service.addresses['http']}"), clock)
        for rounds in (replay.opening, 12, 7, 20, 40):
            for _ in range(rounds):
                replay.round()
            replay.send_late()
            clock.advance(CLOSED_AFTER_S)
            Running(service, clock).writer_came_round()
            agents = read(f"http://{service.addresses['ui']}")
            found.append({agent["agent"]: agent["verdict"] for agent in agents})

    assert found == [found[0]] * 5
    assert found[0]["refunds"] == "failing"


def test_the_recording_is_that_of_the_fleet(tmp_path: Path) -> None:
    now = tmp_path / "now.jsonl.gz"
    now.write_bytes(recorded())

    assert spans_in(now) == spans_in(RECORDING)


def spans_in(recording: Path) -> list[RawSpan]:
    return [span for batch in read_file(recording) for span in batch.spans]


def test_it_leaves_the_named_file_and_nothing_else(
    once: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, folder = once

    assert [path.name for path in folder.iterdir()] == ["demo-spans.jsonl"]
    assert (folder / "demo-spans.jsonl").stat().st_size > 100_000
    assert "report demo-spans.jsonl --agent refunds" in done.stdout
    assert f"report demo-spans.jsonl --agent triage --window {CHANGE}" in done.stdout
    assert CHANGED_AT == CHANGE


def started(folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    env = {**untraced(), "TMPDIR": str(folder)}
    return subprocess.Popen(
        (*DEMO, *flags), cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def told_at_the_end(
    process: subprocess.Popen[bytes], number: signal.Signals
) -> tuple[bytes, bytes]:
    process.send_signal(number)
    try:
        return process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_demo_that_is_interrupted_leaves_only_the_file(
    number: signal.Signals, tmp_path: Path
) -> None:
    with started(tmp_path, "--once") as demo:
        until((tmp_path / "demo-spans.jsonl").exists, "the demo to have begun")
        out, err = told_at_the_end(demo, number)

    assert (demo.returncode, out, err) == (130, b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["demo-spans.jsonl"]


def test_without_a_terminal_it_prints_its_address_and_stays(tmp_path: Path) -> None:
    with started(tmp_path) as demo:
        assert demo.stdout is not None
        [page] = re.findall(rb"http://\S+/", demo.stdout.readline())
        with urlopen(page.decode()) as answer:
            status = answer.status
        told_at_the_end(demo, signal.SIGTERM)

    assert (status, demo.returncode) == (200, 130)


def test_with_an_endpoint_it_is_the_fleet_of_another_service(tmp_path: Path) -> None:
    with serving() as running:
        with started(tmp_path, "--endpoint", running.url("http"), "--pace", "0.1") as fleet:
            until(
                lambda: (
                    running.sum("otel_reliability_log_records_total", disposition="evaluation") >= 4
                ),
                "judgements",
            )
            out, err = told_at_the_end(fleet, signal.SIGTERM)
        running.finalize()
        runs = running.sum("agent_reliability_runs_total", service_name="bookshop")

    assert (fleet.returncode, err) == (130, b"")
    assert running.url("http").encode() in out
    assert runs >= len(CHARACTERS)
    assert list(tmp_path.iterdir()) == []


def test_an_endpoint_that_does_not_answer_yet_is_waited_for_and_named_once(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    with started(tmp_path, "--endpoint", endpoint, "--pace", "0.1") as fleet:
        assert fleet.stdout is not None
        waiting = fleet.stdout.readline().decode()
        received = threading.Event()

        class Sink(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.end_headers()
                received.set()

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                """Log nothing."""

        with ThreadingHTTPServer(("127.0.0.1", port), Sink) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            assert received.wait(60)
            out, err = told_at_the_end(fleet, signal.SIGTERM)
            server.shutdown()

    assert waiting.startswith(f"Waiting for {endpoint}, which does not answer yet (")
    assert b"Waiting" not in out
    assert err == b""
