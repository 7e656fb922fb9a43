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
        archive.writestr("cut.jsonl.gz", gzip.compress(b"{}" * 1_000)[:-20])
    _, problems = runs_of(path)

    assert [problem.detail for problem in problems] == [
        "a zip archive in another archive is not read; unpack it",
        "the zip archive is damaged or encrypted",
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
