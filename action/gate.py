"""The GitHub Action: run the gate on recordings, or an experiment, write the job summary, comment
on the pull request (docs/guides/ci.md).

Its inputs are the environment variables of action.yml, and those that GitHub sets
(GITHUB_STEP_SUMMARY, GITHUB_OUTPUT, GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_API_URL). The exit
code is that of the gate or the experiment; a comment that cannot be written is a warning.
"""

from __future__ import annotations

import glob
import json
import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from otel_reliability.report.markdown import escaped
from otel_reliability.report.text import clean

MAX_SUMMARY: Final = 1_000_000
MAX_COMMENT: Final = 60_000
"""Characters that GitHub accepts, less what the notice about a cut takes."""
BAD_USAGE: Final = 2
EXPERIMENT: Final = "experiment.jsonl"
"""The recording of an experiment."""
TIMEOUT_S: Final = 30.0
STATES: Final = {"held": "✅ held", "failed": "❌ failed", "missing": "❔ not enough data"}
RESULTS: Final = {0: "✅", 1: "❌"}


def main(env: Mapping[str, str]) -> int:
    """Run the gate or the experiment, publish its results, and return its exit code."""
    baseline = _files(env.get("INPUT_BASELINE", ""))
    compared = [word for file in baseline for word in ("--baseline", file)]
    if env.get("INPUT_EXPERIMENT"):
        recordings = [EXPERIMENT]
        done = _experiment(env)
    else:
        recordings = _files(env["INPUT_RECORDINGS"])
        if not recordings:
            _command("error", f"no recording matches {env['INPUT_RECORDINGS'].split()}")
            return BAD_USAGE
        asked = [*_targets(env, compared), *_options(env), "--quiet", *recordings]
        done = _ours("gate", "--format", "json", *asked)
    if not done.stdout:
        _command("error", done.stderr.strip())
        return done.returncode
    results = _results(json.loads(done.stdout), done.returncode)
    common = [*_options(env), "--quiet", *recordings]
    report = json.loads(_ours("report", "--format", "json", *compared, *common).stdout)
    wanted = bool(_lines(env.get("INPUT_BASELINE", "")))
    text = f"## {env['INPUT_TITLE']}\n\n{_markdown(results, report, wanted)}"
    full = _ours("report", "--format", "markdown", *common).stdout
    details = f"\n<details><summary>Every number</summary>\n\n{full}\n</details>\n"
    _append(env.get("GITHUB_STEP_SUMMARY"), _cut(text + details, MAX_SUMMARY))
    _append(env.get("GITHUB_OUTPUT"), f"exit-code={done.returncode}\n")
    _log(text)
    if env.get("INPUT_COMMENT") == "true":
        _comment(env, _cut(text, MAX_COMMENT))
    return done.returncode


def _experiment(env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the experiment, and log what it prints on the way."""
    agent = shlex.split(env.get("INPUT_AGENT", ""))
    options = {"--max-cost": env.get("INPUT_MAX_COST"), "--config": env.get("INPUT_CONFIG")}
    given = [word for flag, value in options.items() if value for word in (flag, value)]
    done = _ours(
        "experiment",
        env["INPUT_EXPERIMENT"],
        *("--out", EXPERIMENT, "--format", "json"),
        *_targets(env, ()),
        *given,
        *shlex.split(env.get("INPUT_EXPERIMENT_OPTIONS", "")),
        *(("--", *agent) if agent else ()),
    )
    if done.stderr:
        _log(done.stderr)
    return done


def _results(found: Mapping[str, Any], code: int) -> Mapping[str, Any]:
    """Return the results of a gate, or those of an experiment in the same form."""
    if "attempts" not in found:
        return {**found, "decided": [], "notes": []}
    cost = found["cost_usd"]
    dollars = "cost unknown" if cost is None else f"{cost:.4g} US dollars"
    return {
        **found["checked"],
        "exit_code": code,
        "summary": f"{found['verdict'].upper()}: {found['attempts']:,} attempts, {dollars}",
        "decided": [one["sentence"] for one in found["targets"]],
        "notes": found["notes"],
    }


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _files(patterns: str) -> list[str]:
    """Return the files that match, each once, in the order of the patterns."""
    found = (
        file
        for pattern in _lines(patterns)
        for file in sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    )
    return list(dict.fromkeys(found))


def _options(env: Mapping[str, str]) -> list[str]:
    flags = {"--min-runs": env.get("INPUT_MIN_RUNS"), "--config": env.get("INPUT_CONFIG")}
    return [word for flag, value in flags.items() if value for word in (flag, value)]


def _targets(env: Mapping[str, str], compared: Sequence[str]) -> list[str]:
    required = [
        word for target in _lines(env.get("INPUT_REQUIRE", "")) for word in ("--require", target)
    ]
    return [
        *required,
        *(("--no-change", *compared) if env.get("INPUT_NO_CHANGE") == "true" else ()),
    ]


def _ours(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "otel_reliability.cli", *args]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def _append(file: str | None, text: str) -> None:
    if file:
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(text)


def _cut(text: str, limit: int) -> str:
    return (
        text
        if len(text) <= limit
        else f"{text[:limit]}\n\n… cut: see the job summary, or the report.\n"
    )


# --- Markdown -------------------------------------------------------------------------------------


def _markdown(results: Mapping[str, Any], report: Mapping[str, Any], wanted: bool) -> str:
    """Return what changed against the base branch and why runs fail, then the targets with values,
    intervals and runs, then the numbers of both branches.
    """
    changes = report.get("baseline")
    lines = [f"**{RESULTS.get(results['exit_code'], '❔')} {results['summary']}**", ""]
    lines += [f"- {_escaped(sentence)}" for sentence in results["decided"]]
    lines += [*_changed(changes), *_why(report["agents"]), ""]
    lines += [f"{_escaped(note)}\n" for note in results["notes"]]
    lines += [f"⚠ {_escaped(warning)}\n" for warning in results["flagged"]]
    if results["verdicts"]:
        lines += ["| target | agent | value | 95 % | runs | |", "|---|---|---:|---:|---:|---|"]
        lines += map(_target, results["verdicts"])
        lines += ["", *(f"- {_escaped(each)}" for each in dict.fromkeys(_notes(results))), ""]
    for change in results["changes"]:
        lines += [
            (
                f"- {STATES[change['state']]}: {_escaped(change['agent'] or '')}: "
                f"{_escaped(change['sentence'])}"
            )
        ]
    if changes is not None:
        lines += ["", "### Numbers against the base branch", "", *_differences(changes)]
    elif wanted:
        lines += ["", "There is no recording of the base branch yet, so nothing is compared."]
    return "\n".join(lines) + "\n"


def _target(result: Mapping[str, Any]) -> str:
    agent = "/".join(
        _escaped(part) for part in (result["agent"], result["task"]) if part is not None
    )
    return f"| {_code(result['target'])} | {agent} | {_side(result)} | {STATES[result['state']]} |"


def _notes(results: Mapping[str, Any]) -> Iterator[str]:
    for result in results["verdicts"]:
        if result["state"] == "failed" and result["value"] is None:
            yield result["sentence"]
        yield from filter(None, (result["why"], result["doubt"], *result["reasons"]))


def _changed(changes: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what differs in each agent's runs from those of the base branch."""
    for agent in () if changes is None else changes["agents"]:
        yield f"- {_escaped(agent['agent'])}, since the base branch: {_escaped(agent['sentence'])}"


def _why(agents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the failing runs of each agent have in common."""
    for agent in agents:
        for one in agent.get("why", ()):
            sentence = f"{_escaped(one['sentence'])} (traces {', '.join(one['traces'])})"
            yield f"- {_escaped(agent['agent'])}, why runs fail: {sentence}"


def _differences(changes: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of the score of each agent and of the numbers that differ by more than
    chance.
    """
    yield "| agent | number | before | 95 % | runs | after | 95 % | runs | |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---|"
    for agent in changes["agents"]:
        for name, one in agent["metrics"].items():
            if name == "score" or one["more_than_chance"]:
                result = f"**{one['verdict']}**" if one["more_than_chance"] else "within chance"
                sides = f"{_side(one['before'])} | {_side(one['after'])}"
                yield f"| {_escaped(agent['agent'])} | `{name}` | {sides} | {result} |"
    yield ""
    for title, key in (("Only on the base branch", "only_before"), ("New", "only_after")):
        if changes[key]:
            yield f"{title}: {', '.join(_escaped(agent['agent']) for agent in changes[key])}."


def _side(reading: Mapping[str, Any]) -> str:
    """Return the cells of a value: the value, its interval, the runs behind it."""
    low = reading.get("low")
    high = reading.get("high")
    interval = "" if low is None or high is None else f"{low:.3g} to {high:.3g}"
    return (
        f"{'–' if reading['value'] is None else format(reading['value'], '.3g')} | {interval} "
        f"| {reading['runs']:,}"
    )


def _escaped(text: str) -> str:
    """Return text of a report, which may hold names that agents chose, as it is shown."""
    return escaped(clean(text, len(text)))


def _code(text: str) -> str:
    return f"`{clean(text, len(text)).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


# --- The log --------------------------------------------------------------------------------------


def _log(text: str) -> None:
    """Print text whose lines the runner does not read as commands."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}\n{text}\n::{token}::")


def _command(name: str, text: str) -> None:
    """Print a command of the runner, such as an error."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{name}::{text}")


# --- The comment ----------------------------------------------------------------------------------


def _comment(env: Mapping[str, str], text: str) -> None:
    """Write the comment of this title, or update it. Without a pull request there is none."""
    path = env.get("GITHUB_EVENT_PATH")
    event: Any = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    number = event.get("pull_request", {}).get("number")
    if number is None:
        return
    marker = f"<!-- otel-reliability: {env['INPUT_TITLE']} -->"
    issues = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/issues"
    try:
        known = next(
            (one for one in _comments(env, f"{issues}/{number}/comments") if marker in one["body"]),
            None,
        )
        url, method = (
            (f"{issues}/{number}/comments", "POST") if known is None else (known["url"], "PATCH")
        )
        _ask(env, url, method, {"body": f"{marker}\n{text}"})
    except OSError as error:
        _command(
            "warning",
            f"The comment was not written ({error}); the job needs "
            "`permissions: pull-requests: write`.",
        )


def _comments(env: Mapping[str, str], url: str) -> Iterator[Mapping[str, Any]]:
    page = 1
    while found := _ask(env, f"{url}?per_page=100&page={page}", "GET"):
        yield from found
        page += 1


def _ask(
    env: Mapping[str, str], url: str, method: str, body: Mapping[str, Any] | None = None
) -> Any:
    headers = {
        "Authorization": f"Bearer {env['GITHUB_TOKEN']}",
        "Accept": "application/vnd.github+json",
    }
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers, method=method), timeout=TIMEOUT_S) as answer:  # noqa: S310  GitHub's own URL
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main(os.environ))
