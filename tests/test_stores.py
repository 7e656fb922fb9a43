"""Trace stores against their recorded and crafted answers, served by a stand-in over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from otel_reliability.cli.fetch import command
from otel_reliability.errors import ConfigurationError
from otel_reliability.model.run import Run
from otel_reliability.recording import Recording
from otel_reliability.sources.from_plain import time_ns
from otel_reliability.stores import langsmith
from otel_reliability.stores.client import Client, StoreError
from otel_reliability.stores.table import STORES, client_of
from otel_reliability.stores.trace import SECOND, Period, Trace, trace_of
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import runs
from tests.shared import shared

Query = dict[str, list[str]]
Answer = Callable[[str, Query, Any], Any]
WEEK = Period(1_790_000_000 * SECOND, 1_800_000_000 * SECOND)


class Refusal(NamedTuple):
    """An answer with another status than 200."""

    status: int
    headers: Mapping[str, str] = {}


class Raw(NamedTuple):
    """An answer that is no JSON, or not all of it."""

    body: bytes


NOT_FOUND = Refusal(404)


class Server:
    """A stand-in: `answer` gets path, query and body, and returns JSON or a `Refusal`."""

    def __init__(self, answer: Answer) -> None:
        self.seen: list[tuple[str, Mapping[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"null")
                server.seen.append((self.path, dict(self.headers)))
                found = answer(parts.path, parse_qs(parts.query), body)
                status = 200
                headers: Mapping[str, str] = {}
                if isinstance(found, Refusal):
                    status, headers = found
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                is_raw = isinstance(found, Raw)
                content = found.body if is_raw else json.dumps(found).encode()
                content = content if status == 200 else b""
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET  # noqa: N815  the name that http.server asks for

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Server]]:
    servers: list[Server] = []

    def start(answer: Answer) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def always(found: Callable[[], Any]) -> Answer:
    def answer(path: str, query: Query, body: Any) -> Any:
        return found()

    return answer


def sample(store: str, name: str) -> Any:
    return json.loads(shared(f"corpora/stores/samples/{store}/{name}").read_text())


def fetched(store: str, url: str, project: str | None = None) -> list[Trace]:
    client = Client(url, sleep=lambda _: None)
    return [*STORES[store].fetch(client, WEEK, project, lambda _: False)]


def runs_of(traces: list[Trace], path: Path) -> list[Run]:
    path.write_text("".join(json.dumps(trace.document) + "\n" for trace in traces))
    runs: list[Run] = []
    recording = Recording(final=runs.extend)
    recording.read_all([path])
    recording.close()
    assert not recording.problems
    return runs


def facts(run: Run) -> tuple[Any, ...]:
    calls = run.tool_calls or ()
    return (
        run.trace_id.hex(),
        run.key.agent,
        run.nested,
        [call.name for call in calls],
        [call.name for call in calls if not call.ok],
        (run.input_tokens, run.output_tokens),
        run.session_id,
    )


def truth_of(run: Mapping[str, Any]) -> tuple[Any, ...]:
    tokens: dict[str, Any] = run["tokens"] or {}
    return (
        run["trace_id"],
        run["agent"],
        run["nested"],
        run["path"],
        run["failures"],
        (tokens.get("input"), tokens.get("output")),
        run["session"],
    )


def assert_runs(store: str, name: str, traces: list[Trace], path: Path) -> None:
    truth = sample(store, "truth.json")[name]
    runs = runs_of(traces, path)
    got = sorted((facts(run) for run in runs), key=repr)
    wanted = sorted((truth_of(run) for run in truth["runs"]), key=repr)
    assert got == wanted
    outcomes: dict[str, str] = truth.get("outcomes_with_evaluations") or {}
    found = {run.trace_id.hex(): run.outcome.value for run in runs if not run.nested}
    assert {each: found[each] for each in outcomes} == outcomes


CAPTURES = ["langgraph-openinference", "ms_agent_framework-native", "pydantic_ai-native"]


JAEGER = [
    "langgraph-openinference.v3",
    "ms_agent_framework-native.v3",
    "ms_agent_framework-native.server2.v3",
    "pydantic_ai-native.v3",
    "pydantic_ai-native.server2.v3",
]


@pytest.mark.parametrize("name", JAEGER)
def test_jaeger(serve: Callable[[Answer], Server], tmp_path: Path, name: str) -> None:
    whole = sample("jaeger", f"{name}.json")

    def answer(path: str, query: Query, _: Any) -> Any:
        if path == "/api/v3/services":
            return {"services": ["one", "two"]}
        if path == "/api/v3/traces":
            return whole if query["query.service_name"] == ["one"] else NOT_FOUND
        wanted = path.rpartition("/")[2]
        return {"result": {"resourceSpans": only(whole["result"]["resourceSpans"], wanted)}}

    traces = fetched("jaeger", serve(answer).url)
    truths = sample("jaeger", "truth.json")
    key = next(each for each in truths if truths[each]["files"] == [f"{name}.json"])
    assert_runs("jaeger", key, traces, tmp_path / "spans.jsonl")


def only(resource_spans: list[Any], trace_id: str) -> list[Any]:
    return [
        {
            **each,
            "scopeSpans": [
                {**part, "spans": [s for s in part["spans"] if s["traceId"] == trace_id]}
                for part in each["scopeSpans"]
            ],
        }
        for each in resource_spans
    ]


def test_jaeger_halves_periods_that_hold_too_many_traces(
    serve: Callable[[Answer], Server],
) -> None:
    times = {
        f"{number:032x}": WEEK.start_ns + number * 1_000 * SECOND for number in range(1, 1_000)
    }

    def document(ids: list[str]) -> Any:
        spans = [{"traceId": each, "spanId": "1" * 16, "name": "a"} for each in ids]
        return {"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}}

    def answer(path: str, query: Query, _: Any) -> Any:
        if path == "/api/v3/traces":
            first = time_ns(query["query.start_time_min"][0])
            last = time_ns(query["query.start_time_max"][0])
            found = [each for each, at in times.items() if first <= at < last]
            return document(found[-int(query["query.num_traces"][0]) :]) if found else NOT_FOUND
        return document([path.rpartition("/")[2]])

    traces = fetched("jaeger", serve(answer).url, "shop")

    assert sorted(trace.trace_id for trace in traces) == sorted(times)


@pytest.mark.parametrize("capture", CAPTURES)
def test_tempo(serve: Callable[[Answer], Server], tmp_path: Path, capture: str) -> None:
    truth = sample("tempo", "truth.json")[capture]
    traces = {run["trace_id"]: None for run in truth["runs"]}
    files = [sample("tempo", name) for name in truth["files"]]
    assert len(files) >= len(traces)

    def answer(path: str, query: Query, _: Any) -> Any:
        if path == "/api/search":
            return {"traces": [{"traceID": f"{number:x}"} for number in range(len(files))]}
        return files[int(path.rpartition("/")[2], 16)]

    got = fetched("tempo", serve(answer).url)
    assert_runs("tempo", capture, got, tmp_path / "spans.jsonl")


@pytest.mark.parametrize("capture", CAPTURES)
def test_phoenix(serve: Callable[[Answer], Server], tmp_path: Path, capture: str) -> None:
    names = sample("phoenix", "truth.json")[capture]["files"]
    spans = [
        span for name in names if ".spans." in name for span in sample("phoenix", name)["data"]
    ]
    ids = [*dict.fromkeys(span["context"]["trace_id"] for span in spans)]

    def answer(path: str, query: Query, _: Any) -> Any:
        if path.endswith("/traces"):
            half = len(ids) // 2
            if "cursor" not in query:
                return {"data": [{"trace_id": each} for each in ids[:half]], "next_cursor": "2"}
            return {"data": [{"trace_id": each} for each in ids[half:]], "next_cursor": None}
        if path.endswith("/spans"):
            found = [s for s in spans if s["context"]["trace_id"] in query["trace_id"]]
            return {"data": found, "next_cursor": None}
        kind = path.rpartition("/")[2].partition("_")[0]
        notes = sample("phoenix", f"{kind}_annotations.json")["data"]
        wanted = query[f"{kind}_ids"]
        return {"data": [n for n in notes if n[f"{kind}_id"] in wanted], "next_cursor": None}

    got = fetched("phoenix", serve(answer).url)
    assert_runs("phoenix", capture, got, tmp_path / "spans.jsonl")


MLFLOW = ["langgraph-mlflow", *CAPTURES]


@pytest.mark.parametrize("capture", MLFLOW)
def test_mlflow(serve: Callable[[Answer], Server], tmp_path: Path, capture: str) -> None:
    traces = sample("mlflow", f"{capture}.batchGet.json")["traces"]

    def answer(path: str, query: Query, body: Any) -> Any:
        if path.endswith("/experiments/search"):
            return {"experiments": [{"experiment_id": "5"}]}
        if path.endswith("/traces/search"):
            infos = [trace["trace_info"] for trace in traces]
            if "page_token" in body:
                return {"traces": infos[2:]}
            return {"traces": infos[:2], "next_page_token": "x"}
        wanted = query["trace_ids"]
        return {"traces": [t for t in traces if t["trace_info"]["trace_id"] in wanted]}

    got = fetched("mlflow", serve(answer).url)
    assert_runs("mlflow", capture, got, tmp_path / "spans.jsonl")


LANGFUSE = ["langfuse-observe", "langgraph-openinference", "pydantic_ai-native"]


@pytest.mark.parametrize("capture", LANGFUSE)
def test_langfuse(serve: Callable[[Answer], Server], tmp_path: Path, capture: str) -> None:
    spans = sample("langfuse", f"{capture}.observations_v2.json")["data"]

    def answer(path: str, query: Query, _: Any) -> Any:
        if path.endswith("/scores"):
            return sample("langfuse", "scores_v3.json")
        wanted = query.get("traceId")
        return {"data": [s for s in spans if not wanted or s["traceId"] in wanted], "meta": {}}

    got = fetched("langfuse", serve(answer).url)
    assert_runs("langfuse", capture, got, tmp_path / "spans.jsonl")


@pytest.mark.parametrize("capture", ["langgraph-openinference", "langfuse-observe"])
def test_langfuse_of_a_server_without_a_list_of_observations(
    serve: Callable[[Answer], Server], tmp_path: Path, capture: str
) -> None:
    """Crafted: its traces hold observations and scores, and JSON in place of text."""
    spans = sample("langfuse", f"{capture}.observations_v2.json")["data"]
    ids = sorted({span["traceId"] for span in spans})

    def read_back(value: Any) -> Any:
        is_json = isinstance(value, str) and value[:1] in ("{", "[")
        return json.loads(value) if is_json else value

    def answer(path: str, query: Query, _: Any) -> Any:
        if path == "/api/public/traces":
            at = int(query["page"][0]) - 1
            return {"data": [{"id": ids[at]}], "meta": {"totalPages": len(ids)}}
        if not path.startswith("/api/public/traces/"):
            return NOT_FOUND
        own = [span for span in spans if span["traceId"] == path.rpartition("/")[2]]
        held = [
            {key: read_back(span[key]) if key in ("input", "output") else span[key] for key in span}
            for span in own
        ]
        scores = [
            {"name": score["name"], "value": score["value"], "timestamp": score["timestamp"]}
            | ({"observationId": subject["id"]} if subject["kind"] == "observation" else {})
            for score in sample("langfuse", "scores_v3.json")["data"]
            for subject in [score["subject"]]
            if subject["id"] in (own[0]["traceId"], *(span["id"] for span in own))
        ]
        return {"id": own[0]["traceId"], "observations": held, "scores": scores}

    got = fetched("langfuse", serve(answer).url)
    assert_runs("langfuse", capture, got, tmp_path / "spans.jsonl")


def test_langfuse_ids_of_early_sdks_are_read(serve: Callable[[Answer], Server]) -> None:
    """UUIDs, and ids that users chose."""

    def observation(name: str, parent: str | None) -> dict[str, Any]:
        times = {"startTime": "2026-11-20T10:00:00Z", "endTime": "2026-11-20T10:00:01Z"}
        known = {"id": name, "traceId": "my run", "parentObservationId": parent}
        return {**known, **times, "type": "SPAN", "name": name}

    spans = [observation("6f1c4b2e-0000-4000-8000-000000000001", None)]
    spans.append(observation("inner", spans[0]["id"]))

    def answer(path: str, query: Query, body: Any) -> Any:
        return NOT_FOUND if path.endswith("/scores") else {"data": spans, "meta": {}}

    [trace] = fetched("langfuse", serve(answer).url)
    found = [
        span
        for of_resource in trace.document["resourceSpans"]
        for of_scope in of_resource["scopeSpans"]
        for span in of_scope["spans"]
    ]

    assert {span["traceId"] for span in found} == {trace.trace_id}
    assert found[1]["parentSpanId"] == found[0]["spanId"]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_langsmith(serve: Callable[[Answer], Server], tmp_path: Path, version: str) -> None:
    whole = sample("langsmith", f"runs_query_{version}.json")
    runs = whole["items" if version == "v2" else "runs"]

    def answer(path: str, query: Query, body: Any) -> Any:
        if path == "/sessions":
            return [{"id": "00000000-0000-4000-8000-000000000001"}]
        if path == "/feedback":
            return [n for n in sample("langsmith", "feedback.json") if n["run_id"] in query["run"]]
        if path == "/api/v2/runs/query" and version == "v1":
            return NOT_FOUND
        wanted = body.get("trace_id") or body.get("trace")
        found = [run for run in runs if wanted in (None, run["trace_id"])]
        if wanted is None:
            found = [
                run for run in found if not (run.get("parent_run_ids") or run.get("parent_run_id"))
            ]
        return {"items": found} if version == "v2" else {"runs": found, "cursors": {}}

    got = fetched("langsmith", serve(answer).url)
    assert_runs("langsmith", f"runs_query_{version}", got, tmp_path / "spans.jsonl")


def test_scores_of_runs_are_written_to_their_traces(
    serve: Callable[[Answer], Server],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    posted: list[tuple[str, Any]] = []

    def answer(path: str, query: Query, body: Any) -> Any:
        posted.append((path, body))
        return {}

    url = serve(answer).url
    monkeypatch.setenv("PHOENIX_ENDPOINT", url)
    monkeypatch.setenv("LANGFUSE_BASE_URL", url)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
    spans = write_otlp(tmp_path / "spans.jsonl", runs("search reply", "fetch fetch"))
    phoenix = call(capsys, "report", spans, "-q", "--scores", "phoenix")
    [(path, body)] = posted
    scores = {(each["trace_id"], each["name"]): each["result"]["score"] for each in body["data"]}
    posted.clear()
    langfuse = call(capsys, "report", spans, "-q", "--scores", "langfuse")

    assert (phoenix.code, langfuse.code) == (0, 0)
    assert "4 scores written to phoenix" in phoenix.err
    assert path == "/v1/trace_annotations"
    assert {name for _, name in scores} == {
        "otel_reliability.path_distance",
        "otel_reliability.retries",
    }
    assert {(each["traceId"], each["name"]): each["value"] for _, each in posted} == scores
    assert len({each["id"] for _, each in posted}) == 4


# --- The client -----------------------------------------------------------------------------------


def test_client_waits_as_long_as_the_store_asks(serve: Callable[[Answer], Server]) -> None:
    answers: Iterator[Any] = iter([Refusal(429, {"Retry-After": "7"}), Refusal(503), {"fine": 1}])
    server = serve(always(lambda: next(answers)))
    waits: list[float] = []

    assert Client(server.url, sleep=waits.append).get("/x") == {"fine": 1}
    assert waits == [7.0, 2.0]


def test_client_gives_up_where_the_store_refuses(serve: Callable[[Answer], Server]) -> None:
    server = serve(always(lambda: Refusal(401)))
    client = Client(server.url, {"Authorization": "Bearer s3cret"}, sleep=lambda _: None)

    with pytest.raises(StoreError, match="status 401") as caught:
        client.get("/x", [("key", "s3cret")])
    assert "s3cret" not in str(caught.value)
    assert len(server.seen) == 1


@pytest.mark.parametrize("store", ["phoenix", "mlflow", "langfuse", "langsmith"])
def test_a_page_that_repeats_ends_the_reading(
    serve: Callable[[Answer], Server], store: str
) -> None:
    pages = {
        "data": [],
        "traces": [],
        "items": [],
        "next_cursor": "same",
        "next_page_token": "same",
        "meta": {"cursor": "same"},
        "experiments": [{"experiment_id": "1"}],
    }
    server = serve(lambda path, _, __: [{"id": "p"}] if path == "/sessions" else pages)

    with pytest.raises(StoreError, match="a page that it answered with before"):
        list(STORES[store].fetch(Client(server.url), WEEK, None, lambda _: False))
    assert len(server.seen) < 6


@pytest.mark.parametrize(
    ("body", "asked", "said"),
    [(b'{"data": [', 6, "the answer is cut off"), (b"<html>Sign in</html>", 1, "no JSON")],
)
def test_client_asks_again_where_an_answer_is_cut_off(
    serve: Callable[[Answer], Server], body: bytes, asked: int, said: str
) -> None:
    server = serve(always(lambda: Raw(body)))

    with pytest.raises(StoreError, match=said):
        Client(server.url, sleep=lambda _: None).get("/x")
    assert len(server.seen) == asked


@pytest.mark.parametrize("asked_for", ["nan", "inf", "soon", "-1"])
def test_client_waits_a_while_where_a_store_asks_for_no_time(
    serve: Callable[[Answer], Server], asked_for: str
) -> None:
    answers: Iterator[Any] = iter([Refusal(429, {"Retry-After": asked_for}), {"fine": 1}])
    waits: list[float] = []
    server = serve(always(lambda: next(answers)))

    assert Client(server.url, sleep=waits.append).get("/x") == {"fine": 1}
    assert waits == [0.0 if asked_for == "-1" else 1.0]


def test_client_sends_no_credentials_to_another_host(serve: Callable[[Answer], Server]) -> None:
    other = serve(always(dict[str, Any]))
    server = serve(always(lambda: Refusal(302, {"Location": f"{other.url}/x"})))

    with pytest.raises(StoreError, match="status 302"):
        Client(server.url, {"x-api-key": "s3cret"}, sleep=lambda _: None).get("/x")
    assert not other.seen


def test_client_refuses_credentials_without_encryption() -> None:
    with pytest.raises(ConfigurationError, match="use https"):
        Client("http://store.example.com", {"x-api-key": "s3cret"})


# --- The command ----------------------------------------------------------------------------------


def test_fetch_goes_on_where_it_stopped(serve: Callable[[Answer], Server], tmp_path: Path) -> None:
    ids = [f"{number:032x}" for number in (1, 2, 3)]

    def document(some: list[str]) -> Any:
        spans = [{"traceId": each, "spanId": "1" * 16, "name": "a"} for each in some]
        return {"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}}

    def answer(path: str, _: Any, __: Any) -> Any:
        return document(ids if path == "/api/v3/traces" else [path.rpartition("/")[2]])

    server = serve(answer)
    output = tmp_path / "spans.jsonl"
    arguments = ["jaeger", "--project", "a", "--url", server.url, "--output", str(output), "-q"]
    first = CliRunner().invoke(command, arguments)
    assert first.exit_code == 0, first.output
    whole = output.read_bytes()
    assert whole.count(b"\n") == 3
    output.write_bytes(whole[: len(whole) - 20])  # it was killed while it wrote
    second = CliRunner().invoke(command, arguments)

    assert second.exit_code == 0
    assert "1 traces fetched from jaeger, 2 were there already" in second.stderr
    assert output.read_bytes() == whole


def listing(ids: list[str]) -> Answer:
    """A Jaeger that lists these traces for each search, and holds each of them."""

    def document(some: list[str]) -> Any:
        spans = [{"traceId": each, "spanId": "1" * 16, "name": "a"} for each in some]
        return {"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}}

    return lambda path, _, __: document(
        ids if path == "/api/v3/traces" else [path.rpartition("/")[2]]
    )


def test_fetch_keeps_a_last_line_that_only_lacks_its_end(
    serve: Callable[[Answer], Server], tmp_path: Path
) -> None:
    ids = [f"{number:032x}" for number in (1, 2)]
    output = tmp_path / "spans.jsonl"
    arguments = ["jaeger", "--project", "a", "--url", serve(listing(ids)).url, "-o", str(output)]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    whole = output.read_bytes()
    output.write_bytes(whole.rstrip())
    again = CliRunner().invoke(command, arguments)

    assert "0 traces fetched from jaeger, 2 were there already" in again.stderr
    assert output.read_bytes() == whole


def test_fetch_says_which_traces_a_store_left_out(serve: Callable[[Answer], Server]) -> None:
    """A period of a second cannot be halved, and holds as many as the store answers with."""
    server = serve(listing([f"{number:032x}" for number in range(1, 101)]))
    client = Client(server.url)
    second = Period(1_790_000_000 * SECOND, 1_790_000_001 * SECOND)
    found = [*STORES["jaeger"].fetch(client, second, "a", lambda _: False)]

    assert len(found) == 100
    [note] = client.notes
    assert "100 traces or more began within" in note


def test_fetch_says_how_to_go_on_after_a_failure(
    serve: Callable[[Answer], Server], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [f"{number:032x}" for number in (1, 2)]

    def answer(path: str, query: Query, body: Any) -> Any:
        return Refusal(403) if path.endswith(ids[1]) else listing(ids)(path, query, body)

    output = tmp_path / "spans.jsonl"
    url = serve(answer).url
    done = call(capsys, "fetch", "jaeger", "--project", "a", "--url", url, "-o", output, "-q")

    assert done.code == 2
    assert "status 403; the credentials do not permit it. 1 traces were fetched before" in done.err
    assert "call again with the same --output" in done.err
    assert output.read_bytes().count(b"\n") == 1


def test_a_store_without_traces_in_the_period_gives_none(
    serve: Callable[[Answer], Server], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "spans.jsonl"
    url = serve(listing([])).url
    done = call(capsys, "fetch", "jaeger", "--project", "a", "--url", url, "-o", output, "-q")

    assert (done.code, output.read_bytes()) == (0, b"")
    assert "0 traces fetched from jaeger." in done.err


# --- Addresses, credentials and what is missing ---------------------------------------------------


@pytest.mark.parametrize(
    ("store", "env", "base"),
    [
        ("phoenix", {"PHOENIX_HOST": "0.0.0.0", "PHOENIX_PORT": "7"}, "http://localhost:7"),
        ("phoenix", {"PHOENIX_HOST": "px", "PHOENIX_HOST_ROOT_PATH": "/a/"}, "http://px:6006/a"),
        ("phoenix", {"PHOENIX_COLLECTOR_ENDPOINT": "http://px/v1/traces"}, "http://px"),
        ("mlflow", {"PHOENIX_HOST": "px"}, "http://localhost:5000"),
    ],
)
def test_addresses_of_the_variables_of_a_store(store: str, env: dict[str, str], base: str) -> None:
    assert client_of(STORES[store], env).base == base


def test_an_address_that_is_no_server_names_its_variable() -> None:
    with pytest.raises(ConfigurationError, match=r"MLFLOW_TRACKING_URI: 'sqlite:///a.db' is not"):
        client_of(STORES["mlflow"], {"MLFLOW_TRACKING_URI": "sqlite:///a.db"})


def test_credentials_that_are_not_set_are_named() -> None:
    with pytest.raises(StoreError, match=r"^LANGFUSE_SECRET_KEY is not set; export it"):
        client_of(STORES["langfuse"], {"LANGFUSE_PUBLIC_KEY": "pk"})


@pytest.mark.parametrize("store", [*STORES])
def test_credentials_that_are_refused_name_their_variables(
    serve: Callable[[Answer], Server], store: str
) -> None:
    url = serve(always(lambda: Refusal(401))).url
    env = {"LANGFUSE_PUBLIC_KEY": "p", "LANGFUSE_SECRET_KEY": "s", "LANGSMITH_API_KEY": "k"}
    client = client_of(STORES[store], env, url)

    with pytest.raises(StoreError) as caught:
        next(STORES[store].fetch(client, WEEK, "a", lambda _: False))
    assert f"status 401; set {STORES[store].credentials}." in str(caught.value)


def test_a_password_in_the_address_is_sent_and_not_shown(
    serve: Callable[[Answer], Server],
) -> None:
    server = serve(always(lambda: Refusal(403)))
    client = Client(server.url.replace("//", "//me:se%2Fcret@"))

    with pytest.raises(StoreError) as caught:
        client.get("/x")
    assert "cret" not in str(caught.value)
    assert server.seen[0][1]["Authorization"] == "Basic bWU6c2UvY3JldA=="  # me:se/cret


def test_help_of_fetch_names_the_variables_of_each_store(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = " ".join(call(capsys, "fetch", "--help").out.split())

    for store in STORES.values():
        assert f"{store.name} {store.url[0] if store.url else '--url'}" in found
        assert store.credentials in found


def test_jaeger_says_which_services_there_are(serve: Callable[[Answer], Server]) -> None:
    def answer(path: str, query: Query, body: Any) -> Any:
        return {"services": ["shop", "bot"]} if path.endswith("/services") else NOT_FOUND

    client = Client(serve(answer).url)

    assert [*STORES["jaeger"].fetch(client, WEEK, "shpo", lambda _: False)] == []
    assert client.notes == {"No service is shpo; there are: bot, shop.": 1}


def test_tempo_says_how_many_traces_are_cut(serve: Callable[[Answer], Server]) -> None:
    def answer(path: str, query: Query, body: Any) -> Any:
        if path == "/api/search":
            return {"traces": [{"traceID": "1f"}, {"traceID": "2f"}]}
        return {"trace": {"resourceSpans": []}, "status": "PARTIAL"}

    client = Client(serve(answer).url)

    assert [*STORES["tempo"].fetch(client, WEEK, None, lambda _: False)] == []
    assert client.notes == {"Some traces are larger than the store answers with: they are cut.": 2}


def test_phoenix_project_whose_name_is_no_part_of_a_path(
    serve: Callable[[Answer], Server],
) -> None:
    def answer(path: str, query: Query, body: Any) -> Any:
        found = [{"id": "UHJvamVjdDox", "name": "a/b"}] if path == "/v1/projects" else []
        return {"data": found, "next_cursor": None}

    server = serve(answer)

    assert fetched("phoenix", server.url, "a/b") == []
    assert server.seen[-1][0].startswith("/v1/projects/UHJvamVjdDox/traces?")


def test_mlflow_reads_every_experiment_prompts_and_names_what_lies_elsewhere(
    serve: Callable[[Answer], Server], tmp_path: Path
) -> None:
    traces = sample("mlflow", "langgraph-mlflow.batchGet.json")["traces"][:2]
    linked = json.dumps([{"name": "triage", "version": "3"}])
    traces[0]["trace_info"]["tags"]["mlflow.linkedPrompts"] = linked
    traces[1]["spans"] = []
    searched: list[Any] = []

    def answer(path: str, query: Query, body: Any) -> Any:
        if path.endswith("/experiments/search"):
            last = "page_token" in body
            token = {} if last else {"next_page_token": "x"}
            return {"experiments": [{"experiment_id": "6" if last else "5"}], **token}
        if path.endswith("/traces/search"):
            searched.append(body["locations"])
            return {"traces": [trace["trace_info"] for trace in traces]}
        return {"traces": traces}

    client = Client(serve(answer).url)
    found = [*STORES["mlflow"].fetch(client, WEEK, None, lambda _: False)]
    runs = runs_of(found, tmp_path / "spans.jsonl")

    assert [len(locations) for locations in searched] == [2]
    assert ("prompt", "triage 3") in {each for run in runs for each in run.fingerprints}
    [note] = client.notes
    assert "no spans in the server's database" in note


def test_langfuse_experiments_are_tasks(serve: Callable[[Answer], Server], tmp_path: Path) -> None:
    spans = sample("langfuse", "langgraph-openinference.observations_v2.json")["data"]
    trace_id = spans[0]["traceId"]
    own = [span for span in spans if span["traceId"] == trace_id]

    def answer(path: str, query: Query, _: Any) -> Any:
        if path.endswith("/experiment-items"):
            return {"data": [{"traceId": trace_id, "experimentItemId": "item-7"}], "meta": {}}
        return NOT_FOUND if path.endswith("/scores") else {"data": own, "meta": {}}

    runs = runs_of(fetched("langfuse", serve(answer).url), tmp_path / "spans.jsonl")

    assert {run.task_id for run in runs if not run.nested} == {"item-7"}


def test_langsmith_examples_are_tasks_and_the_hub_names_prompts(tmp_path: Path) -> None:
    runs = sample("langsmith", "runs_query_v2.json")["items"]
    root = next(run for run in runs if not run["parent_run_ids"])
    own = [run for run in runs if run["trace_id"] == root["trace_id"]]
    root["reference_example_id"] = "example-7"
    model = next(run for run in own if run["run_type"].lower() == "llm")
    model.setdefault("metadata", {}).update(lc_hub_owner="me", lc_hub_repo="triage")
    model["metadata"]["lc_hub_commit_hash"] = "abc"
    spans = langsmith.batch_of(own, "shop").spans
    found = runs_of([trace_of(root["trace_id"].replace("-", ""), spans)], tmp_path / "spans.jsonl")

    assert "example-7" in {run.task_id for run in found}
    assert ("prompt", "me/triage abc") in {each for run in found for each in run.fingerprints}
