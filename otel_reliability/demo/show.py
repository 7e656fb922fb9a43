"""The demo from its beginning to its end: the service, the fleet that sends to it, and what the
service reports of it.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from otel_reliability.demo.hosting import hosting
from otel_reliability.demo.replay import LATE_AFTER_S, SERVICE, TIMEOUT_S, Endpoint, Replay, opener
from otel_reliability.errors import SourceError
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.stability.tier import Tier, rounded
from otel_reliability.metrics.success.verdict import Verdict
from otel_reliability.report.sections import dim, in_grade
from otel_reliability.report.terminal import INDENT, columns, heading
from otel_reliability.report.text import MINUS, count, share
from otel_reliability.report.words import badness

PROGRAM: Final = "otel-reliability"
WAIT_S: Final = 60.0
"""Seconds for which `--once` waits for an endpoint."""
WAIT_PAUSE_S: Final = 1.0
MAX_REASONS: Final = 3
OPENING_PAUSE_S: Final = 0.5
"""Seconds from one of the first rounds to the next on a terminal."""
CLOSED_AFTER_S: Final = 3.0
"""Seconds after which a service has closed a complete run."""
REFRESH_S: Final = 0.5
CHANGED_AT: Final = 72
"""Letter from which `triage` works by another prompt."""

Show = Callable[[RenderableType], None]
Agent = Mapping[str, Any]
"""An agent, as the API returns it."""


def send(endpoint: str, console: Console, *, once: bool, pace: float) -> None:
    """Send the fleet to a service or a Collector that runs elsewhere, a round every `pace` seconds,
    until Ctrl-C; `once`: the first rounds only.
    """
    post = Endpoint(endpoint)
    _wait_for(post, console, WAIT_S if once else None)
    replay = Replay(post)
    console.print(
        f"Sending a small fleet to {endpoint}, a round every {pace:g} s; Ctrl-C ends it.",
        soft_wrap=True,
    )
    while not (once and replay.rounds >= replay.opening):
        replay.round()
        time.sleep(0 if once else pace)
    time.sleep(LATE_AFTER_S)
    replay.send_late()


def _wait_for(post: Endpoint, console: Console, most_s: float | None) -> None:
    """Wait until the endpoint answers, and say so once; raise `SourceError` after `most_s`."""
    began = time.monotonic()
    why = post.unreachable()
    if why:
        console.print(
            f"Waiting for {post.url}, which does not answer yet ({why}): a service that starts "
            "together with the demo, as in Compose, may need a while. Ctrl-C ends it.",
            soft_wrap=True,
        )
    while why:
        if most_s is not None and time.monotonic() - began > most_s:
            raise SourceError(f"{post.url} has not answered for {most_s:g} s: {why}.")
        time.sleep(WAIT_PAUSE_S)
        why = post.unreachable()


def play(path: Path, console: Console, *, once: bool, pace: float) -> None:
    """Run the demo with a service of its own; only the file of spans is left. `once`: it ends as
    soon as the result is shown.
    """
    with hosting() as service, path.open("w", encoding="utf-8") as file:
        post = Endpoint(f"http://{service.addresses['http']}")

        def sink(signal: str, body: str) -> None:
            if replay.rounds <= replay.opening and not file.closed:
                file.write(f"{body}\n")
                file.flush()
            post(signal, body)

        replay = Replay(sink)
        api = f"http://{service.addresses['ui']}"
        if not console.is_terminal and not once:
            console.print(
                f"The demo runs until Ctrl-C or SIGTERM; its page is {api}/ (the result "
                "follows in half a minute)."
            )
        with _shown(console) as show:
            _open(replay, api, show, min(OPENING_PAUSE_S, pace) if console.is_terminal else 0.0)
        file.close()
        agents = read(api)
        console.print(
            result(agents, _get(f"{api}/api/v1/agents/{SERVICE}/{agents[0]['agent']}")["agents"][0])
        )
        live = None if once else {name: str(address) for name, address in service.addresses.items()}
        if live is None:
            console.print(table(agents), "")
        console.print(
            next_steps(live, path, agents[0]), soft_wrap=True
        )  # a broken command cannot be copied
        if live is not None:
            with _shown(console, transient=False) as show, suppress(KeyboardInterrupt):
                while True:
                    replay.round()
                    agents = read(api)
                    below = (
                        f"Live: {count(replay.rounds, 'round')} of the fleet so far. Ctrl-C "
                        "ends it and leaves only the file."
                    )
                    show(
                        Group(
                            _headline(agents[0]),
                            table(agents),
                            Text.assemble((below, "dim"), f"  {api}/"),
                        )
                    )
                    time.sleep(pace)


def _open(replay: Replay, api: str, show: Show, pause: float) -> None:
    """Send the first rounds, and wait until the service has closed their runs."""
    while replay.rounds < replay.opening:
        replay.round()
        show(so_far(read(api), replay))
        time.sleep(pause)
    for seconds in (LATE_AFTER_S, CLOSED_AFTER_S):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            show(so_far(read(api), replay))
            time.sleep(REFRESH_S)
        replay.send_late()


def read(api: str) -> list[Agent]:
    """Return the agents of a service, the worst verdict first."""
    agents = [line for line in _get(f"{api}/api/v1/agents")["agents"] if line["service"] == SERVICE]
    return sorted(
        agents,
        key=lambda line: (badness(line["verdict"], line["grade"], line["score"]), line["agent"]),
    )


def _get(url: str) -> Any:
    with opener(url).open(url, timeout=TIMEOUT_S) as response:
        return json.load(response)


# --- What is shown --------------------------------------------------------------------------------


def so_far(agents: Sequence[Agent], replay: Replay) -> RenderableType:
    """Return the fleet while its first rounds run."""
    known = agents and agents[0]["grade"] is not None
    text = (
        f"{agents[0]['agent']} is the least reliable so far."
        if known
        else "Too few runs yet for a score."
    )
    sent = f"Round {replay.rounds} of {replay.opening}: the spans go to the service by OTLP.\n"
    return Group(Text(text, "bold"), dim(sent), table(agents))


def result(agents: Sequence[Agent], worst: Agent) -> RenderableType:
    """Return which agent is unreliable and why, and which others are worth inspecting."""
    reasons = Table.grid(padding=(0, 2, 0, 0))
    reasons.add_column(justify="right", no_wrap=True)
    reasons.add_column(no_wrap=True)
    for reason in [one for one in worst["findings"]["reasons"] if (one["points"] or 0) >= 1][
        :MAX_REASONS
    ]:
        reasons.add_row(
            f"{MINUS}{reason['points']:.1f}",
            Text(reason["title"], "bold"),
            Text(reason["sentence"]),
        )
    others = Table.grid(padding=(0, 2, 0, 0))
    for agent in agents[1:]:
        if agent["changed"] or agent["flags"] or agent["grade"] not in {"STABLE", "VARIABLE"}:
            others.add_row(Text(agent["agent"], "bold"), _verdict(agent), _about(agent))
    inspect = (
        (Text("Also worth inspecting", "bold"), Padding(others, INDENT)) if others.row_count else ()
    )
    return Group(_headline(agents[0]), Padding(reasons, INDENT), *inspect, "")


def _headline(agent: Agent) -> RenderableType:
    if agent["grade"] is None:
        return Text("No agent has enough runs for a verdict.", "bold")
    words, why = _words(agent)
    return Text.assemble(
        (f"{agent['agent']} {words}", "bold"), "  ", _verdict(agent), f" {_score(agent)}/100", why
    )


def _words(agent: Agent) -> tuple[str, str]:
    """Headline about the agent with the worst verdict, and why."""
    if agent["verdict"] == Verdict.FAILING.value:
        succeed = agent["success_rate"]
        why = (
            f"{share(agent['error_rate'])} of its runs end in an error."
            if succeed is None
            else f"{share(succeed)} of its runs succeed."
        )
        return "fails more often than it succeeds", f"\n  {why}"
    is_bad = agent["grade"] in {"UNSTABLE", "CRITICAL"}
    penalty = agent["largest_penalty"]
    why = f"\n  {penalty['sentence']}" if penalty else ""
    return "is unreliable" if is_bad else "is the least reliable", why


def _about(agent: Agent) -> str:
    if agent["changed"]:
        return f"its behaviour changed: {agent['changed']['signal']}"
    if agent["score"] is None:
        return "not enough telemetry to score"
    return agent["largest_penalty"]["sentence"] if agent["largest_penalty"] else ""


def table(agents: Sequence[Agent]) -> RenderableType:
    """Return a line for each agent."""
    lines = columns(
        ("Agents", "verdict", "succeed", "errors", "largest penalty", "score", "runs"), "llrrlrr"
    )
    for agent in agents:
        penalty = agent["largest_penalty"]
        words = (
            f"{ALL_SPECS[penalty['name']].title} {MINUS}{penalty['points']:.1f}"
            if penalty
            else "none"
        )
        missing = dim("not enough data")
        lines.add_row(
            Text(agent["agent"], "bold"),
            _verdict(agent),
            share(agent["success_rate"]),
            share(agent["error_rate"]),
            missing
            if agent["score"] is None
            else Text.assemble("changed · " if agent["changed"] else "", words),
            _score(agent),
            f"{agent['runs']:,}",
        )
    return lines


def _verdict(agent: Agent) -> Text:
    grade = None if agent["grade"] is None else Tier[agent["grade"]]
    return in_grade(agent["verdict"], grade, flagged=bool(agent["flags"]))


def _score(agent: Agent) -> str:
    return "–" if agent["score"] is None else str(rounded(agent["score"]))


def next_steps(addresses: Mapping[str, str] | None, path: Path, worst: Agent) -> RenderableType:
    """Return the addresses of the service, while it runs, and what to do with the spans in the
    file.
    """
    places = Table.grid(padding=(0, 2, 0, 0))
    if addresses is not None:
        places.add_row("its page", Text(f"http://{addresses['ui']}/", "cyan"))
        places.add_row(
            "its metrics, for Prometheus", Text(f"http://{addresses['metrics']}/metrics", "cyan")
        )
        places.add_row("its API", Text(f"http://{addresses['ui']}/api/v1/agents", "cyan"))
        places.add_row("OTLP of your own agents", Text(f"http://{addresses['http']}", "cyan"))
    program = _program()
    name = worst["agent"]
    penalty = worst["largest_penalty"]
    commands = {
        f"{name} in full, from the spans in the file": f"report {path} --agent {name}",
        "which agent changed, since when, and how": f"change {path}",
        "the meaning of a number, and how to improve it": (
            f"explain {penalty['name'] if penalty else 'score'}"
        ),
        "triage, only since it changed": f"report {path} --agent triage --window {CHANGED_AT}",
        "a gate for CI": f"gate {path} --require 'success_rate>=0.5' --require 'score>=60'",
        "the service for your own agents": "serve",
    }
    lines = [
        Text.assemble("  ", what, "\n    ", (f"{program} {how}", "cyan"))
        for what, how in commands.items()
    ]
    parts = [] if addresses is None else [Padding(places, INDENT)]
    return Group(
        heading("Where to look next"), *parts, *(lines if addresses is None else lines[:3]), ""
    )


def _program() -> str:
    """Return how the command line is called here: in an environment that is not active, by its
    path.
    """
    script = Path(sys.executable).with_name(PROGRAM)
    if shutil.which(PROGRAM) or not script.exists():
        return PROGRAM
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


@contextmanager
def _shown(console: Console, *, transient: bool = True) -> Generator[Show]:
    """Yield what shows changing content in one position; nothing where there is no terminal."""
    if not console.is_terminal:
        yield lambda _: None
        return
    with Live(
        console=console, transient=transient, auto_refresh=False, vertical_overflow="crop"
    ) as live:
        yield lambda content: live.update(content, refresh=True)
