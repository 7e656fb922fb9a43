"""Files of every kind: read as the runs they hold, or named in one sentence."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.model.run import Run
from otel_reliability.recording import Recording
from otel_reliability.sources.batch import Malformed, Reason
from otel_reliability.sources.kinds import kind_of
from tests.shared import shared

READ = [
    "a00_otlp_lines.jsonl",
    "a01c_otlp_array.json",
    "a02_otlp_base64ids.json",
    "a02b_otlp_snake.json",
    "a02c_otlp_snake_hex.json",
    "a03_console.txt",
    "a03b_console_mixed.log",
    "a03c_to_json_lines.jsonl",
    "a04_tempo_api.json",
    "a04b_tempo_api_v2.json",
    "a05_jaeger_ui.json",
    "a05b_jaeger_one_line.json",
    "a06_zipkin.json",
    "a23_otlp.pb",
    "a23b_otlp_length_prefixed.pb",
    "a24_otlp.zip",
    "a24b_otlp.tar.gz",
]
OTLP = "a00_otlp_lines.jsonl"
PYTHON = "a03c_to_json_lines.jsonl"
NAMED = {
    "a07_phoenix_spans.jsonl": "Phoenix",
    "a07b_phoenix_spans.csv": "Phoenix",
    "a07c_phoenix_spans.parquet": "Parquet",
    "a08_langfuse_trace.json": "Langfuse",
    "a09b_langsmith_runs.json": "LangSmith",
    "a10_tau_bench.json": "tau-bench",
    "a11_swe_agent.traj": "SWE-agent",
    "a14b_openai_agents.json": "OpenAI Agents",
    "a15_langgraph_state.json": "LangGraph",
    "a16_atif.json": "ATIF",
    "a18_logfire_rows.json": "Logfire",
    "a20_collector_debug.txt": "file exporter",
    "a21_node_console.txt": "JavaScript",
    "a22c_saved_page.html": "web page",
    "a25_phoenix.db": "SQLite",
    "a26_mlflow_trace.json": "MLflow",
    "a27b_inspect.json": "Inspect",
    "b_instrumentation_library_spans.jsonl": "before 0.15",
}


def runs_of(path: Path) -> tuple[list[Run], list[Malformed]]:
    runs: list[Run] = []
    problems: list[Malformed] = []
    recording = Recording(problem=problems.append, final=runs.extend)
    recording.read_all([path])
    recording.close()
    return sorted(runs, key=lambda run: run.start_ns), problems


def shape(run: Run) -> object:
    """What every form keeps of a run: not the nanoseconds."""
    return run.path, run.tokens, run.session_id


@pytest.mark.parametrize("name", READ)
def test_every_form_gives_the_same_runs(name: str) -> None:
    wanted = runs_of(shared("corpora/files/a00_otlp_lines.jsonl"))[0]
    found, problems = runs_of(shared(f"corpora/files/{name}"))

    assert (len(found), problems) == (6, [])
    assert [shape(run) for run in found] == [shape(run) for run in wanted]


@pytest.mark.parametrize("name", NAMED)
def test_other_kinds_are_named_once(name: str) -> None:
    found, problems = runs_of(shared(f"corpora/files/{name}"))

    assert (found, len(problems)) == ([], 1)
    assert NAMED[name] in problems[0].detail


@pytest.mark.parametrize(
    "name", ["b_collector_file_format_proto.bin", "b_collector_file_format_proto_zstd.bin"]
)
def test_the_collectors_protobuf_files_are_read(name: str) -> None:
    found, problems = runs_of(shared(f"corpora/files/{name}"))

    assert (len(found), problems) == (3, [])


@pytest.mark.parametrize("name", ["a17_gemini_outfile.log", "a28_copilot_file_exporter.jsonl"])
def test_file_exporters_of_coding_agents_are_read(name: str) -> None:
    found, problems = runs_of(shared(f"corpora/files/{name}"))

    assert found
    assert problems == []


def test_archives_of_several_kinds_are_read(tmp_path: Path) -> None:
    files = [shared(f"corpora/files/{name}") for name in ("a05_jaeger_ui.json", "a16_atif.json")]
    zipped = tmp_path / "all.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
    tarred = tmp_path / "all.tar"
    with tarfile.open(tarred, "w") as archive:
        for file in files:
            data = file.read_bytes()
            member = tarfile.TarInfo(file.name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

    for path in (zipped, tarred):
        found, problems = runs_of(path)
        assert len(found) == 6
        assert [problem.place for problem in problems] == [f"{path}!a16_atif.json"]


def go_of(span: dict[str, Any]) -> dict[str, Any]:
    """The span of a file of Python's console exporter, as the SDK for Go prints it."""

    def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"Key": key, "Value": {"Type": "", "Value": value}} for key, value in given.items()]

    trace_id = span["context"]["trace_id"].removeprefix("0x")
    own = span["context"]["span_id"].removeprefix("0x")
    above = (span["parent_id"] or "0x" + "0" * 16).removeprefix("0x")
    status = span["status"]
    return {
        "Name": span["name"],
        "SpanContext": {"TraceID": trace_id, "SpanID": own, "TraceFlags": "01"},
        "Parent": {"TraceID": trace_id, "SpanID": above},
        "SpanKind": 1,
        "StartTime": span["start_time"].replace("Z", "999Z"),
        "EndTime": span["end_time"].replace("Z", "999Z"),
        "Attributes": attributes(span["attributes"]),
        "Events": [
            {
                "Name": event["name"],
                "Time": event["timestamp"],
                "Attributes": attributes(event["attributes"]),
            }
            for event in span["events"]
        ],
        "Links": None,
        "Status": {
            "Code": status["status_code"].capitalize(),
            "Description": status.get("description", ""),
        },
        "Resource": attributes(span["resource"]["attributes"]),
        "InstrumentationScope": {"Name": "agent", "Version": ""},
    }


def lines_of(name: str) -> list[Any]:
    return [json.loads(line) for line in shared(f"corpora/files/{name}").read_text().splitlines()]


def elastic() -> str:
    hits = [
        {"_source": {**span, "process": trace["processes"][span["processID"]]}}
        for trace in documents_of("a05_jaeger_ui.json")["data"]
        for span in trace["spans"]
    ]
    return json.dumps({"took": 1, "hits": {"hits": hits}}, indent=1)


def zipkin_without_endpoints() -> str:
    spans = [span for trace in documents_of("a06_zipkin.json") for span in trace]
    kept = [{key: span[key] for key in span if key != "localEndpoint"} for span in spans]
    return json.dumps(kept)


def plain(value: dict[str, Any]) -> Any:
    [(kind, given)] = value.items()
    if kind == "arrayValue":
        return [plain(each) for each in given["values"]]
    return int(given) if kind == "intValue" else given


def flat_spans() -> list[Any]:
    """Spans of which each has its resource, and attributes that are an object."""

    def flat(given: dict[str, Any]) -> dict[str, Any]:
        pairs = given.get("attributes", [])
        return {**given, "attributes": {each["key"]: plain(each["value"]) for each in pairs}}

    return [
        {
            **flat(span),
            "resource": flat(resource["resource"]),
            "scope": scope["scope"],
            "kind": span["kind"].removeprefix("SPAN_KIND_"),
            "status": {"code": span["status"].get("code", "UNSET").removeprefix("STATUS_CODE_")},
            "events": [flat(event) for event in span.get("events", [])],
        }
        for line in lines_of(OTLP)
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


@pytest.mark.parametrize(
    "written",
    [
        lambda: "".join(json.dumps(span) + "\n" for span in flat_spans()),
        lambda: json.dumps(flat_spans()),
        lambda: json.dumps(documents_of("a05_jaeger_ui.json")["data"]),
        lambda: "[1, 2]\n" + json.dumps(lines_of(PYTHON), indent=1) + '\n["done"]\n',
        lambda: json.dumps([go_of(span) for span in lines_of(PYTHON)]),
        lambda: "".join(json.dumps(go_of(span), indent=2) + "\n" for span in lines_of(PYTHON)),
        lambda: "".join(json.dumps(go_of(span)) + "\n" for span in lines_of(PYTHON)),
        lambda: "".join(
            json.dumps(each) + "\n" for line in lines_of(OTLP) for each in line["resourceSpans"]
        ),
        lambda: "".join(json.dumps([line]) + "\n" for line in lines_of(OTLP)),
        elastic,
        zipkin_without_endpoints,
        lambda: "".join(docker(line) for line in texts_of(OTLP)),
        lambda: "".join(kubernetes(line) for line in texts_of(OTLP)),
        lambda: "".join(json.dumps(span) + "\n" for span in spans_of(OTLP)),
        lambda: json.dumps({"spans": spans_of(OTLP)}, indent=2),
    ],
)
def test_neighbours_of_known_kinds_give_the_same_runs(
    tmp_path: Path, written: Callable[[], str]
) -> None:
    path = tmp_path / "spans.json"
    path.write_text(written())
    found, problems = runs_of(path)
    wanted, _ = runs_of(shared(f"corpora/files/{OTLP}"))

    assert problems == []
    assert [run.path for run in found] == [run.path for run in wanted]
    assert [run.tokens for run in found] == [run.tokens for run in wanted]
    assert [run.ended_in_error for run in found] == [run.ended_in_error for run in wanted]


def texts_of(name: str) -> list[str]:
    return [json.dumps(line) for line in lines_of(name)]


def spans_of(name: str) -> list[Any]:
    return [
        span
        for line in lines_of(name)
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def parts_of(line: str) -> list[str]:
    """A line as a runtime of containers cuts it."""
    return [line[at : at + 4_000] for at in range(0, len(line), 4_000)]


def docker(line: str) -> str:
    common = {"stream": "stdout", "time": "2026-11-01T10:00:00.1Z"}
    return "".join(json.dumps({"log": part, **common}) + "\n" for part in parts_of(line + "\n"))


def kubernetes(line: str) -> str:
    parts = parts_of(line)
    marks = ["P"] * (len(parts) - 1) + ["F"]
    begin = "2026-11-01T10:00:00.123456789Z stdout"
    return "".join(f"{begin} {mark} {part}\n" for mark, part in zip(marks, parts, strict=True))


def test_lines_that_no_container_logged_are_problems(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(docker('{"resourceSpans": []}') + '{"log": "cut of')
    _, problems = runs_of(path)

    assert [(one.reason, one.place) for one in problems] == [(Reason.JSON, f"{path}:2")]


ID = "5b8aa5a2d2c872e8321cf37308d69df2"


@pytest.mark.parametrize(
    ("written", "named", "works"),
    [
        ("id,timestamp,name,userId,sessionId,latency\n1,2,3,4,5,6\n", "Langfuse traces", "fetch"),
        ('"id","traceId","parentObservationId"\r\n1,2,3\r\n', "Langfuse", "fetch langfuse"),
        ("id,name,run_type,dotted_order\n1,2,3,4\n", "LangSmith runs", "fetch langsmith"),
        ("name,context.trace_id,context.span_id\n1,2,3\n", "Phoenix", "fetch phoenix"),
        (
            '{"info": {"request_id": "1", "experiment_id": "0"}, "data": {"spans": []}}',
            "MLflow",
            "fetch mlflow",
        ),
        ('{"traces": [{"traceID": "1", "rootServiceName": "x"}]}', "Tempo", "fetch tempo"),
        ('[{"traceId": "1", "id": "2", "binaryAnnotations": []}]', "before version 2", "api/v2"),
        (f"Activity.TraceId:   {ID}\n" * 3, ".NET", "Collector"),
        (f"\tTraceId      : {ID}\n" * 3, "Rust", "Collector"),
        (f"INFO: 'chat' : {ID} {ID[:16]} INTERNAL [tracer: x:]\n" * 3, "Java", "Collector"),
        (f"app-1  | {{\napp-1  |   traceId: '{ID}',\n" * 3, "JavaScript", "Collector"),
        (f"{{\n  traceId: \x1b[32m'{ID}'\x1b[39m,\n}}\n" * 3, "JavaScript", "Collector"),
        ('[x] INFO app - {"resource": {}, "scopeSpans": []}\n' * 3, "other text", "sed"),
        ('app-1  | {"resourceSpans": []}\n' * 3, "other text", "sed"),
        ('{"type": "thread.started", "thread_id": "t"}\n' * 3, "codex exec", "~/.codex/sessions"),
        ('[{"sessionId": "1", "messageId": 0, "message": "x"}]', "prompts", "~/.gemini/tmp"),
        ("2026 INFO hello\n" * 400, "none of 400 lines", "otel_reliability.record"),
        ('{"hello": 1}', "no kind of file that is known", "otel_reliability.record"),
        (
            f'[{{"traceID": "{ID}", "spanID": "1", "operationName": "", "serviceName": ""}}]',
            "Grafana",
            "fetch tempo",
        ),
        (
            "id,timestamp,userId,sessionId,release,input,output\n1,2,3,4,5,6,7\n",
            "Langfuse",
            "fetch",
        ),
        ("id,run_type,start_time,inputs\n1,2,3,4\n", "LangSmith runs", "fetch langsmith"),
        ('{"info": {"trace_id": "1", "trace_location": {}}}', "MLflow", "fetch mlflow"),
        ('[{"trace.trace_id": "1", "trace.span_id": "2"}]', "Honeycomb", "Collector"),
        ('{"Traces": [{"Segments": [{"Document": "{}"}]}]}', "X-Ray", "Collector"),
        ('{"projectId": "p", "traceId": "1", "spans": []}', "Google Cloud", "Collector"),
        ('{"trace_id": "1", "span_id": "2", "resource_name": "x"}', "Datadog", "Collector"),
        ('[{"role": "user", "content": "Hello."}]', "chat messages", "without spans"),
        ('{"detail": "Not authenticated"}', "an error", "the key"),
        ('<?xml version="1.0"?><Error/>', "XML", "otel_reliability.record"),
        ("# Notes", "no kind of file that is known", "otel_reliability.record"),
        ('{"__REALTIME_TIMESTAMP": "1", "MESSAGE": "{}"}\n', "systemd", "--output cat"),
        ('{"events": [{"message": "x", "ingestionTime": 1}]}', "CloudWatch", "jq -r"),
        ('{"_index": "t", "_id": "1", "_source": {"@timestamp": ""}}', "Elasticsearch", "OTLP"),
        (
            '{"context": {"trace_id": "1"}, "parent_span_id": "", "start": 1, "end": 2}',
            "PHP",
            "Collector",
        ),
        ("#<struct OpenTelemetry::SDK::Trace::SpanData\n name=1>\n" * 3, "Ruby", "Collector"),
        (f"{{\n  trace_id      : {ID}\n}}\n" * 3, "C++", "Collector"),
        ("{\n  severityNumber: undefined,\n  body: 'x'\n}\n", "JavaScript", "Collector"),
        ('{"type": "text", "sessionID": "s", "part": {}}\n' * 3, "opencode", "the session itself"),
        (
            '{"response": "", "stats": {"models": {}, "tools": {}}}',
            "gemini --output-format json",
            "~/.gemini/tmp",
        ),
        (
            '{"display": "x", "pastedContents": {}, "timestamp": 1}\n' * 3,
            "prompts",
            "~/.claude/projects",
        ),
        ('{"session_id": "s", "ts": 1, "text": "x"}\n' * 3, "prompts", "~/.codex/sessions"),
        ('[{"chat_messages": [{"sender": "human"}]}]', "claude.ai", "without spans"),
        (b"\x89PNG\r\n\x1a\n\0\0", "binary data", "otel_reliability.record"),
        ('{"resourceSpans": []}\n'.encode("utf-16-le"), "UTF-16", "iconv"),
        (gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "twice", "gunzip"),
        (b"BZh91AY&SY", "bzip2", "bunzip2"),
        (b"\xfd7zXZ\0\0", "xz", "unxz"),
    ],
)
def test_neighbours_that_are_not_read_are_named_once(
    tmp_path: Path, written: str | bytes, named: str, works: str
) -> None:
    path = tmp_path / "export"
    path.write_bytes(written.encode() if isinstance(written, str) else written)
    found, problems = runs_of(path)

    assert found == []
    assert [(each.reason, each.place) for each in problems] == [(Reason.KIND, str(path))]
    assert named in problems[0].detail
    assert works in problems[0].detail


def test_the_source_of_a_program_is_no_recording_with_a_prefix(tmp_path: Path) -> None:
    path = tmp_path / "gen.py"
    path.write_text('out.write({"resourceSpans": [each for each in spans]})\n' * 3)
    found, problems = runs_of(path)

    assert found == []
    assert not [each for each in problems if "sed " in each.detail]


def test_files_of_no_known_kind_in_an_archive_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "nothing")
        archive.writestr("spans.jsonl", shared("corpora/files/a00_otlp_lines.jsonl").read_bytes())
    found, problems = runs_of(path)

    assert (len(found), problems) == (6, [])


@pytest.mark.parametrize("form", ["zip", "gztar"])
def test_an_archive_of_sessions_names_what_works(tmp_path: Path, form: str) -> None:
    home = shared("corpora/sessions/claude_code/scout/home")
    path = shutil.make_archive(str(tmp_path / "home"), form, home)
    found, problems = runs_of(Path(path))

    assert found == []
    assert [problem.detail for problem in problems] == [
        "it holds a session of claude-code; unpack it, and name the folder"
    ]


def test_damage_inside_of_an_archive_is_named(tmp_path: Path) -> None:
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a.jsonl", "{}")
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(inner, "inner.zip")
        archive.writestr(
            "cut.jsonl.gz", gzip.compress(shared(f"corpora/files/{OTLP}").read_bytes())[:-20]
        )
    _, problems = runs_of(path)

    assert [problem.detail for problem in problems] == [
        "a zip archive in another archive is not read; unpack it",
        "the gzip data ends in the middle; what came before it was read",
    ]


def documents_of(name: str) -> Any:
    return json.loads(shared(f"corpora/files/{name}").read_text())


@pytest.mark.parametrize(
    ("name", "documents"),
    [
        ("jaeger.jsonl", lambda: documents_of("a05_jaeger_ui.json")["data"]),
        ("zipkin.jsonl", lambda: documents_of("a06_zipkin.json")),
    ],
)
def test_a_document_a_line_is_read_too(
    name: str, documents: Callable[[], list[Any]], tmp_path: Path
) -> None:
    path = tmp_path / name
    lines = [json.dumps(one) for one in documents()]
    path.write_text("\n".join(lines))

    assert len(runs_of(path)[0]) == 6


def test_a_file_in_which_nothing_is_a_document_says_so(tmp_path: Path) -> None:
    """Each line has a prefix of a program that collects output."""
    path = tmp_path / "compose.log"
    text = shared("corpora/files/a03_console.txt").read_text()
    path.write_text("\n".join(f"app-1  | {line}" for line in text.splitlines()))

    runs, problems = runs_of(path)
    assert (runs, [one.reason for one in problems]) == ([], [Reason.JSON])


def test_a_compressed_file_in_an_archive_is_read(tmp_path: Path) -> None:
    content = gzip.compress(shared("corpora/files/a00_otlp_lines.jsonl").read_bytes())
    path = tmp_path / "all.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("day/a.jsonl.gz")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))

    assert len(runs_of(path)[0]) == 6


def test_a_cut_protobuf_file_keeps_what_came_before(tmp_path: Path) -> None:
    whole = shared("corpora/files/b_collector_file_format_proto.bin").read_bytes()
    cut = tmp_path / "cut.bin"
    cut.write_bytes(whole + whole[:-7])
    found, problems = runs_of(cut)

    assert len(found) == 3
    assert [problem.reason.value for problem in problems] == ["truncated"]


def test_keys_of_the_arguments_of_a_tool_name_no_session() -> None:
    """A tool may take a `payload`, as records of Codex have one, or `parts`, as those of Qwen."""
    used: dict[str, Any] = {"type": "tool_use", "input": {"payload": {"parts": [], "data": 1}}}
    line: dict[str, Any] = {
        "type": "assistant",
        "sessionId": "s",
        "uuid": "u",
        "timestamp": "2026-11-27T10:00:00Z",
        "message": {"content": [used]},
    }
    assert kind_of(json.dumps(line).encode() + b"\n").name == "a session of claude-code"


def test_keys_inside_of_content_name_no_kind() -> None:
    head = b'{"resourceSpans": [{"scopeSpans": [{"note": "{\\"traceID\\": 1, \\"spanID\\": 2}"}]}]}'

    assert kind_of(head).name == "OTLP-JSON lines"
