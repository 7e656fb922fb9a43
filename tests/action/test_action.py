"""The GitHub Action, run as a runner does: its step's command, its environment, and a server that
stands for GitHub's API.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pytest
import yaml
from msgspec.structs import replace

from action import gate
from otel_reliability.cli.app import app
from otel_reliability.model.span import STATUS_ERROR
from otel_reliability.testing import write_otlp
from tests.experiments.agents import PLAIN_AGENT
from tests.report.build import runs

ROOT: Final = Path(__file__).resolve().parents[2]
ACTION: Final = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEP: Final = ACTION["runs"]["steps"][-1]
STEADY: Final = ("search book",) * 25
VARIED: Final = ("search book", "pay search", "pay", "search pay book pay", "book search") * 5
COMMENTS: Final = re.compile(r"/repos/agents/shop/issues/7/comments\?per_page=100&page=(\d+)")


class GitHub(ThreadingHTTPServer):
    """The comments of pull request 7 of agents/shop. `refuses`: the token may not write."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, str]] = []
        self.tokens: set[str | None] = set()
        self.refuses = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Lists comments by pages of two, creates and updates them."""

    @property
    def github(self) -> GitHub:
        assert isinstance(self.server, GitHub)
        return self.server

    def do_GET(self) -> None:
        found = COMMENTS.fullmatch(self.path)
        assert found
        start = 2 * (int(found[1]) - 1)
        self._answer(200, self.github.comments[start : start + 2])

    def do_POST(self) -> None:
        assert self.path == "/repos/agents/shop/issues/7/comments"
        self._write({"url": f"{self.github.url}/comments/{len(self.github.comments)}"})

    def do_PATCH(self) -> None:
        self._write(self.github.comments[int(self.path.rpartition("/")[2])])

    def _write(self, comment: dict[str, str]) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.github.tokens.add(self.headers["Authorization"])
        if self.github.refuses:
            self._answer(403, {"message": "Resource not accessible by integration"})
            return
        comment["body"] = body
        if comment not in self.github.comments:
            self.github.comments.append(comment)
        self._answer(201, comment)

    def _answer(self, status: int, body: Any) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name of the base class
        """Keep the test's output clean."""


class Done(NamedTuple):
    """How the step ended, and what it left."""

    code: int
    log: str
    summary: str
    outputs: str


@pytest.fixture
def github() -> Iterator[GitHub]:
    """A server on a free port, with three comments of others."""
    server = GitHub()
    server.comments += [
        {"url": f"{server.url}/comments/{number}", "body": "looks good"} for number in range(3)
    ]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


Run: TypeAlias = Callable[[Path, Mapping[str, str]], tuple[int, str]]
"""How the step is run, in a folder and an environment: its exit code and its log."""


def as_runner(folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Run the command of the step as a runner does, in processes of its own."""
    programs = folder / "runner" / "otel-reliability" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / "python").chmod(0o755)
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]]
    done = subprocess.run(
        shell, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def in_process(folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Run the script of the step and the commands that it calls in this process: each takes half a
    second to begin.
    """
    log = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(log), redirect_stderr(log):
        patch.chdir(folder)
        patch.setattr(gate, "_ours", ours)
        return gate.main(env), log.getvalue()


def ours(*args: str) -> subprocess.CompletedProcess[str]:
    """Run one of our commands."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as raised:
        app(list(args), prog_name="otel-reliability")
    return subprocess.CompletedProcess(
        args, int(raised.value.code or 0), out.getvalue(), err.getvalue()
    )


def act(
    folder: Path,
    github: GitHub,
    run: Run = in_process,
    /,
    *,
    event: Any = None,
    without: str = "",
    **inputs: str,
) -> Done:
    """Run the last step of action.yml with these inputs and the defaults of the others, and
    `without` one variable of the runner.
    """
    defaults = {name: str(known.get("default", "")) for name, known in ACTION["inputs"].items()}
    values = {
        **defaults,
        "token": "secret",
        **{name.replace("_", "-"): value for name, value in inputs.items()},
    }
    given = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text)
        for name, text in STEP["env"].items()
    }
    (folder / "event.json").write_text(
        json.dumps({"pull_request": {"number": 7}} if event is None else event)
    )
    files = {name: folder / name.lower() for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for file in files.values():
        file.write_text("")
    env = {
        **given,
        **{name: str(file) for name, file in files.items()},
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_API_URL": github.url,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": "agents/shop",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(folder / "runner"),
    }
    env.pop(without, None)
    code, log = run(folder, env)
    return Done(code, log, *(file.read_text() for file in files.values()))


def test_summary_and_comment_show_values_intervals_and_changes(
    tmp_path: Path, github: GitHub
) -> None:
    write_otlp(tmp_path / "old.jsonl", runs(*STEADY))
    write_otlp(tmp_path / "new.jsonl", runs(*VARIED))

    done = act(
        tmp_path,
        github,
        as_runner,
        recordings="new*.jsonl",
        baseline="old.jsonl",
        require="score>=99\nretry_explosion<=0",
        min_runs="5",
    )

    assert (done.code, done.outputs) == (1, "exit-code=1\n")
    [comment] = [one["body"] for one in github.comments if "otel-reliability" in one["body"]]
    assert comment.startswith(
        "<!-- otel-reliability: Agent reliability -->\n## Agent reliability\n"
    )
    assert "**❌ 1 failed, 1 held**" in comment
    assert re.search(
        r"\| `score>=99` \| support \| [\d.]+ \| [\d.]+ to [\d.]+ \| 25 \| ❌ failed \|", comment
    )
    assert "### Numbers against the base branch" in comment
    changed = comment.index("- support, since the base branch: differs: pay is used in 0 % →")
    assert changed < comment.index("| target |")
    assert re.search(
        r"\| support \| `score` \| 100 \| .* \| 25 \| [\d.]+ \| .* \| 25 \| \*\*worse\*\* \|",
        comment,
    )
    assert re.search(r"\| support \| `path_entropy` \|", comment)
    assert comment.partition("\n")[2] in done.summary + "\n"
    assert "# Reliability report" in done.summary
    assert github.tokens == {"Bearer secret"}


def test_an_agent_that_always_fails_is_named_though_its_score_holds(
    tmp_path: Path, github: GitHub
) -> None:
    spans = [
        replace(one, status=STATUS_ERROR) if one.parent_id is None else one
        for one in runs(*["search"] * 12)
    ]
    write_otlp(tmp_path / "spans.jsonl", spans)

    held = act(tmp_path, github, recordings="spans.jsonl", require="score>=80")

    said = "⚠ support: its verdict is failing: succeeds in 0 % of 12 runs; require"
    assert (held.code, said in held.summary) == (0, True)


def test_names_are_data(tmp_path: Path, github: GitHub) -> None:
    name = "a|b\n::add-mask::secret\n##[group]@octocat #7 https://evil.example \u202eyap"
    spans = runs(*VARIED, agent=name)
    write_otlp(tmp_path / "spans.jsonl", spans)

    done = act(
        tmp_path,
        github,
        recordings="spans.jsonl",
        baseline="spans.jsonl",
        require="score>=99",
        min_runs="5",
    )

    commands = re.findall(r"^\s*::(\S+?)::(\S*)", done.log, re.MULTILINE)
    assert [command for command, _ in commands] == ["stop-commands", commands[0][1]]
    assert "\n##[" not in done.log
    [comment] = [one["body"] for one in github.comments if "otel-reliability" in one["body"]]
    for text in (comment, done.summary):
        assert not re.search(r"@octocat|#7|https://|\u202e|^::", text, re.MULTILINE)
        [row] = re.findall(r"^\| `score>=99` .*", text, re.MULTILINE)
        assert len(re.findall(r"(?<!\\)\|", row)) == 7
        assert r"a\|b" in row


def test_comment_of_one_title_is_updated(tmp_path: Path, github: GitHub) -> None:
    write_otlp(tmp_path / "spans.jsonl", runs(*STEADY))

    codes = [
        act(tmp_path, github, recordings="spans.jsonl", require=target, title=title).code
        for title, target in (("One", "score>=80"), ("One", "score>=90"), ("Two", "score>=80"))
    ]

    assert codes == [0, 0, 0]
    assert len(github.comments) == 5
    assert "`score>=90`" in github.comments[3]["body"]


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ({"require": "score>=80", "min-runs": "50"}, 3, "❔ not enough data"),
        (
            {"require": "score>=80", "baseline": "none/*.jsonl"},
            0,
            "There is no recording of the base branch yet",
        ),
        (
            {"no-change": "true", "baseline": "spans.jsonl"},
            0,
            "✅ held: support: no difference that these runs",
        ),
        ({"require": "scor>=80"}, 2, "Did you mean score?"),
        ({"recordings": "none.jsonl", "require": "score>=80"}, 2, "no recording matches"),
        ({}, 2, "nothing is required"),
    ],
)
def test_exit_code_is_the_gates(
    tmp_path: Path, github: GitHub, inputs: dict[str, str], code: int, words: str
) -> None:
    """Missing data is no success, a base branch without a recording no failure; bad usage is an
    error of the job.
    """
    write_otlp(tmp_path / "spans.jsonl", runs(*STEADY))

    done = act(tmp_path, github, **{"recordings": "spans.jsonl", **inputs})

    assert done.code == code, done.log
    assert words in done.log


@pytest.mark.parametrize("reason", ["refused", "no pull request", "switched off"])
def test_no_comment_is_no_failure(tmp_path: Path, github: GitHub, reason: str) -> None:
    """A token of a fork may not write, and a push has no pull request: the summary is there all the
    same.
    """
    write_otlp(tmp_path / "spans.jsonl", runs(*STEADY))
    github.refuses = reason == "refused"
    event = {"ref": "refs/heads/main"} if reason == "no pull request" else None
    comment = "false" if reason == "switched off" else "true"

    done = act(
        tmp_path,
        github,
        event=event,
        recordings="spans.jsonl",
        require="score>=80",
        comment=comment,
    )

    assert done.code == 0
    assert ("::warning::The comment was not written" in done.log) == github.refuses
    assert len(github.comments) == 3
    assert "`score>=80`" in done.summary


@pytest.mark.parametrize(
    ("schema", "pattern", "number"),
    [
        ("vendor.github-actions", "action.yml", 1),
        ("vendor.dependabot", ".github/dependabot.yml", 1),
        ("vendor.github-workflows", ".github/workflows/*.yml", 3),
    ],
)
def test_files_of_github_satisfy_their_schemas(schema: str, pattern: str, number: int) -> None:
    files = list(ROOT.glob(pattern))
    checker = Path(sysconfig.get_path("scripts")) / "check-jsonschema"
    done = subprocess.run(
        [checker, "--builtin-schema", schema, *files],
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(files) == number
    assert done.returncode == 0, done.stdout


def test_without_an_event_the_results_are_printed(tmp_path: Path, github: GitHub) -> None:
    """Why the failing runs of an agent fail is among them."""
    failing = (
        runs(*["search pay"] * 12, success=False),
        runs(*["search"] * 12, first=20, success=True),
    )
    write_otlp(tmp_path / "new.jsonl", [span for spans in failing for span in spans])
    done = act(
        tmp_path,
        github,
        without="GITHUB_EVENT_PATH",
        recordings="new.jsonl",
        require="success_rate>=0.9",
    )

    assert (done.code, done.outputs) == (1, "exit-code=1\n")
    assert "why runs fail: runs that call pay fail in 100 % (12 of 12 runs)" in done.summary
    assert not any("otel-reliability" in one["body"] for one in github.comments)


def test_experiment_decides_and_its_sentences_stand_first(tmp_path: Path, github: GitHub) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "input": "hello", "expect": "HELLO"}\n')
    (tmp_path / "agent.py").write_text(PLAIN_AGENT)

    done = act(
        tmp_path,
        github,
        experiment="tasks.jsonl",
        agent=f"{sys.executable} agent.py",
        require="success_rate>=0.7",
        experiment_options="--max-runs 40 --vary-with 'echo hello'",
    )

    assert done.code == 2, done.log
    assert "another form of the input" in done.log

    done = act(
        tmp_path,
        github,
        as_runner,
        experiment="tasks.jsonl",
        agent=f"{sys.executable} agent.py",
        require="success_rate>=0.7",
        experiment_options="--max-runs 40",
    )

    assert (done.code, done.outputs) == (0, "exit-code=0\n"), done.log
    [comment] = [one["body"] for one in github.comments if "otel-reliability" in one["body"]]
    assert re.search(r"\*\*✅ PASS: \d+ attempts, cost unknown\*\*", comment)
    assert re.search(r"\n- success\S+: PASS", comment)
