"""A fleet in the terminal: of a service that runs, and of a file that grows."""

from __future__ import annotations

import gzip
import json
import re
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from otel_reliability.cli.asking import Asked
from otel_reliability.cli.following import Followed, Tail
from otel_reliability.cli.watch import row_of
from otel_reliability.config import AssemblySettings, MetricSettings, Settings
from otel_reliability.model.span import RawSpan
from otel_reliability.report.fleet_table import FleetRow, ago, worst_first
from otel_reliability.testing import traces_json, write_otlp
from tests.cli.command_line import Done, call
from tests.real.ports import free_port
from tests.real.terminal import Terminal
from tests.real.untraced import untraced
from tests.real.waiting import until
from tests.report.build import runs, spoil
from tests.service.running import Running, body_of, serving

SETTINGS = Settings(metrics=MetricSettings(min_runs=2), assembly=AssemblySettings(linger=0.0))
FLEET: list[RawSpan] = [
    *runs(*["a b"] * 12, agent="steady"),
    *runs(*["a", "b", "c a", "b c", "c", "a b c"] * 2, first=20, agent="wild"),
    *runs("fetch fetch fetch fetch fetch", *["fetch"] * 11, failed="fetch", first=40, agent="stubborn"),
    *runs("a", first=60, agent="new"),
]


@pytest.fixture(name="running", scope="module")
def running_service() -> Generator[Running]:
    """A service that knows four agents."""
    with serving({"metrics": {"min_runs": 2}}) as running:
        assert running.post("traces", body_of(FLEET)).status == 200
        running.settle()
        yield running


@pytest.fixture(name="path")
def file_of_the_fleet(tmp_path: Path) -> Path:
    """A file of the same agents."""
    return write_otlp(tmp_path / "spans.jsonl", FLEET)


def watch(capsys: pytest.CaptureFixture[str], *args: object) -> Done:
    """One frame."""
    return call(capsys, "watch", *args, "--set", "metrics.min_runs=2", "--once")


def order_of(frame: str) -> list[str]:
    """The agents in the order in which they stand."""
    return [
        name
        for line in frame.splitlines()
        for name in line.split()[:1]
        if name in {"steady", "wild", "stubborn", "new"}
    ]


def test_a_running_service_is_shown_worst_first(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """Each agent with its tier, its score, its runs and what hurts it most; those without a score last."""
    done = watch(capsys, running.url("pages"))
    lines = {line.split()[0]: line for line in done.out.splitlines() if line}

    assert (done.code, done.err) == (0, "")
    assert order_of(done.out) == ["stubborn", "wild", "steady", "new"]
    assert "Path entropy −" in lines["wild"] or "Tool variance −" in lines["wild"]
    assert "🟡 VARIABLE" in lines["stubborn"]
    assert "Retry explosion −25.0" in lines["stubborn"]
    assert "🟢 STABLE" in lines["steady"]
    assert "nothing" in lines["steady"]
    assert re.search(r" 100 +12 +[\d,]+ d ago$", lines["steady"])
    assert "no score" in lines["new"]
    assert "1 of the 2 runs" in lines["new"]
    assert "\x1b" not in done.out


def test_service_and_file_show_the_same_numbers(
    running: Running, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for the courses, of which each has seen what it has seen."""
    live, recorded = (watch(capsys, source).out.splitlines() for source in (running.url("pages"), path))

    def numbers(lines: list[str]) -> list[list[str]]:
        return [[word for word in line.split() if not set(word) <= set("▁▂▃▄▅▆▇█")] for line in lines[3:-2]]

    assert numbers(live) == numbers(recorded)
    assert recorded[-1] == f"{path}: {len(FLEET)} spans read." or recorded[-1].endswith(f"{len(FLEET)} spans read.")


def test_agents_can_be_chosen(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By name or pattern; where none is meant it is said."""
    assert order_of(watch(capsys, path, "--agent", "st*").out) == ["stubborn", "steady"]
    assert "None of 4 agents is meant by --agent." in watch(capsys, path, "--agent", "x").out


def test_where_nobody_listens_it_is_said_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Bad usage, in one line."""
    done = watch(capsys, f"http://127.0.0.1:{free_port()}")

    assert done.code == 2
    assert "nobody answers at http://127.0.0.1:" in done.err
    assert "otel-reliability serve" in done.err
    assert "Traceback" not in done.err


def test_another_door_is_told_from_the_pages(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """Who gives the port of OTLP or of the metrics is told which one is meant."""
    for door in ("http", "metrics"):
        done = watch(capsys, str(running.service.addresses[door]))
        assert done.code == 2
        assert "--pages" in done.err


@pytest.mark.parametrize("address", ["ftp://box:8080", "http://", "http://box:port", "http://box:0"])
def test_an_address_that_cannot_be_is_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With one that could."""
    done = watch(capsys, address)

    assert done.code == 2
    assert "write it like http://127.0.0.1:8080" in done.err


def test_a_token_is_asked_for_and_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a file, or from the variable that the service reads; without, or with a wrong one, it is said what to give."""
    (right := tmp_path / "token").write_text("secret\nolder\n")
    (wrong := tmp_path / "wrong").write_text("guess")
    with serving(token="secret") as guarded, pytest.MonkeyPatch.context() as patch:
        url = guarded.url("pages")
        refused = [watch(capsys, url), watch(capsys, url, "--token-file", wrong)]
        let_in = [watch(capsys, url, "--token-file", right)]
        patch.setenv("OTEL_RELIABILITY_SERVICE_TOKEN", "secret")
        let_in.append(watch(capsys, url))

    assert [(done.code, "--token-file" in done.err) for done in refused] == [(2, True), (2, True)]
    assert [(done.code, "No agent has runs yet." in done.out) for done in let_in] == [(0, True), (0, True)]
    assert "secret" not in "".join(done.out + done.err for done in (*refused, *let_in))


def test_a_token_file_without_a_token_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is asked with an empty one."""
    (empty := tmp_path / "token").write_text("\n")

    assert "a file with a token in it" in watch(capsys, "http://127.0.0.1:1", "--token-file", empty).err


def test_a_service_that_is_not_ready_is_told_from_none() -> None:
    """It brings its state back, say."""

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Nothing."""

        def log_error(self, format: str, *args: object) -> None:  # noqa: A002  the parent's word
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Busy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(Exception, match="not ready yet"):
            Asked(f"http://127.0.0.1:{server.server_port}").agents()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_many_agents_are_asked_for_page_by_page(running: Running) -> None:
    """All of them come, each once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("otel_reliability.cli.asking.A_PAGE", 3)
        names = [line["agent"] for line in Asked(running.url("pages")).agents()]

    assert sorted(names) == ["new", "steady", "stubborn", "wild"]


def test_a_line_of_an_older_service_has_what_it_has() -> None:
    """Course, cost and change are absent, and nothing else is."""
    line = {
        "service_namespace": None,
        "service": "shop",
        "environment": None,
        "agent": "desk",
        "runs": 9,
        "score": 91.0,
        "score_note": "",
        "tier": "STABLE",
        "last_run": "2023-11-14T22:13:20.000000001Z",
    }

    assert row_of(line) == FleetRow("desk", 91.0, 9, last_ns=1_700_000_000 * 10**9, place="shop")


def test_names_from_telemetry_move_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are shown as dots, and long names cut."""
    path = write_otlp(tmp_path / "evil.jsonl", runs("a", "a", agent="\x1b[2Jgone [bold]x[/bold] " + "y" * 10_000))
    out = watch(capsys, path).out

    assert "\x1b" not in out
    assert "·[2Jgone" in out
    assert len(out) < 2_000


# --- A file that grows ------------------------------------------------------------------------------------------------


@contextmanager
def followed(path: Path) -> Generator[Followed]:
    """A file under watch."""
    made = Followed(str(path), SETTINGS, once=False)
    try:
        yield made
    finally:
        made.close()


def seen(followed: Followed) -> dict[str, int]:
    """The runs of each agent that have closed by now."""
    followed.read(5.0)
    followed.read(5.0)  # what lingers no longer is closed by the next look
    return {line["agent"]: line["runs"] for line in followed.agents()}


def line_of(spans: list[RawSpan]) -> bytes:
    """A request on one line, without its end."""
    return json.dumps(traces_json(spans)).encode()


def append(path: Path, spans: list[RawSpan]) -> None:
    """Write them behind what is there."""
    with path.open("ab") as file:
        file.write(line_of(spans) + b"\n")


def test_what_is_appended_is_seen(tmp_path: Path) -> None:
    """Also a line that comes in two pieces, and one that nobody ended; what cannot be read is counted."""
    path = write_otlp(tmp_path / "spans.jsonl", runs("a", "a", agent="desk"))
    with followed(path) as file:
        first = seen(file)
        append(path, runs("a", first=3, agent="desk"))
        second = seen(file)
        line = line_of(runs("a", first=4, agent="desk"))
        with path.open("ab") as raw:
            raw.write(line[:50])
            raw.flush()
            half = seen(file)
            raw.write(line[50:])
        whole = seen(file)
        spoil(path, "", "{broken")
        spoilt = seen(file)

    assert [each["desk"] for each in (first, second, half, whole, spoilt)] == [2, 3, 3, 4, 4]
    assert file.unread == 1


def test_a_file_that_is_rotated_or_cut_is_read_anew(tmp_path: Path) -> None:
    """As the Collector's file exporter does it, and as `> file` does."""
    path = write_otlp(tmp_path / "spans.jsonl", runs("a", "a", agent="desk"))
    with followed(path) as file:
        assert seen(file) == {"desk": 2}
        append(path, runs("a", first=3, agent="desk"))
        path.rename(tmp_path / "spans-1.jsonl")
        assert seen(file) == {"desk": 3}
        write_otlp(path, runs("b", "b", first=4, agent="clerk"))
        assert until(lambda: seen(file).get("clerk"), "the new file") == 2
        path.write_bytes(line_of(runs("b", first=9, agent="clerk")) + b"\n")
        assert until(lambda: seen(file)["clerk"] == 3, "the file that was cut")


def test_no_more_than_a_line_is_held(tmp_path: Path) -> None:
    """One beyond the bound is passed over, and the next one is read."""
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b"x" * 300_000 + b"\nshort\n")
    tail = Tail(path, longest=1_000)

    assert list(tail.lines()) == [b"", b"short"]
    tail.close()


def test_a_packed_file_is_shown_but_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is appended to one."""
    path = tmp_path / "spans.jsonl.gz"
    path.write_bytes(gzip.compress(line_of(runs("a", "a", agent="steady"))))

    assert order_of(watch(capsys, path).out) == ["steady"]
    with pytest.raises(Exception, match="--once"):
        Tail(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad usage."""
    done = watch(capsys, tmp_path / "absent")

    assert done.code == 2
    assert "cannot be read (No such file or directory)" in done.err


# --- In a terminal ----------------------------------------------------------------------------------------------------


@pytest.fixture(name="terminal")
def terminal_on_a_file(tmp_path: Path) -> Iterator[Terminal]:
    """It watches a file of two runs."""
    path = write_otlp(tmp_path / "spans.jsonl", runs("a", "a", agent="steady"))
    options = ("--every", "0.2", "--set", "metrics.min_runs=2", "--set", "assembly.linger=0s")
    terminal = Terminal(untraced(), 12, "otel_reliability.cli", "watch", str(path), *options)
    yield terminal
    terminal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are made another way there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_follows_until_ctrl_c_and_ends_well(terminal: Terminal, tmp_path: Path, number: signal.Signals) -> None:
    """What is written is shown; Ctrl-C is how it is meant to end, and SIGTERM does it, too."""
    until(lambda: "steady" in terminal.seen(), "the first frame")
    append(tmp_path / "spans.jsonl", runs("b", "c", "d", first=9, agent="fresh"))
    until(lambda: "fresh" in terminal.seen(), "the agent that came")

    assert terminal.end(number) == 0
    assert "Traceback" not in terminal.seen()
    assert "Ctrl-C ends it." in terminal.seen()


# --- The table --------------------------------------------------------------------------------------------------------


def test_agents_without_a_score_stand_last() -> None:
    """However their names sort."""
    rows = [FleetRow("a", None, 1), FleetRow("c", 90.0, 9), FleetRow("b", 20.0, 9)]

    assert [row.name for row in worst_first(rows)] == ["b", "c", "a"]


def test_the_future_is_now() -> None:
    """A clock that is ahead makes no negative times."""
    assert ago(0, 5 * 10**9) == "now"
