"""`otel-reliability experiment`."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from otel_reliability.cli.options import CONFIG, form, set_option, settings_of
from otel_reliability.cli.output import show, write
from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.experiments.agents import (
    DEFAULT_BODY,
    Agent,
    CommandAgent,
    PostedAgent,
    called_agent,
)
from otel_reliability.experiments.called import SHAPE
from otel_reliability.experiments.decision import MARGIN, is_sequential, no_loss_since
from otel_reliability.experiments.experiment import (
    DEFAULT_ROUNDS,
    FAULT,
    Experiment,
    ExperimentPlan,
)
from otel_reliability.experiments.faults import DEFAULT_KINDS, KINDS
from otel_reliability.experiments.journal import AttemptResult, Journal, read_results
from otel_reliability.experiments.receiver import ANY_ADDRESS, PROTOCOLS
from otel_reliability.experiments.rewriters import variants_of, written_variants
from otel_reliability.experiments.success import NO_ERROR
from otel_reliability.experiments.tasks import Task, read_tasks
from otel_reliability.metrics.passes.run_counts import recommend_runs
from otel_reliability.model.row import BASELINE
from otel_reliability.recording import Recording
from otel_reliability.report import gate, json, terminal
from otel_reliability.report.build import report_of
from otel_reliability.report.target import parse
from otel_reliability.report.text import clean, count
from otel_reliability.service.addresses import LISTENS
from otel_reliability.statistics.sequential import SequentialDecision

HALF_WIDTH: Final = "0.05"
"""Precision of the fixed design that an experiment is compared with: ± 5 points."""
DEFAULT_MAX_RUNS: Final = recommend_runs(HALF_WIDTH)
MAX_TASKS: Final = 20
"""Tasks that the progress page shows."""
FAILED: Final = 1
UNDECIDED: Final = 3
PROMPT: Final = "prompt"
"""The condition under which the input is put in other words."""
_COLOURS: Final = {
    SequentialDecision.PASS: "green",
    SequentialDecision.FAIL: "red",
    SequentialDecision.UNDECIDED: "yellow",
}


@click.command("experiment")
@click.argument("tasks", type=click.Path(path_type=Path))
@click.argument("command", nargs=-1, metavar="-- COMMAND...")
@click.option(
    "--call",
    metavar="MODULE:FUNCTION",
    help="In place of COMMAND: a Python function of the input that returns the output.",
)
@click.option(
    "--post", metavar="URL", help="In place of COMMAND: a running service that gets the input."
)
@click.option(
    "--body",
    default=DEFAULT_BODY,
    show_default=True,
    metavar="TEMPLATE",
    help="What is posted, with {input} and {id}.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Header that is posted; repeatable.",
)
@click.option(
    "--listen",
    default="127.0.0.1:4318",
    show_default=True,
    metavar="HOST:PORT",
    help="With --post: where the service sends its spans, by OTLP over HTTP.",
)
@click.option(
    "--require", "requirements", multiple=True, metavar="TARGET", help="What must hold; repeatable."
)
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="EARLIER",
    help=(
        "Require that no success is lost since the experiment of this recording, by more than "
        f"{MARGIN * 100:g} points; compared task by task."
    ),
)
@click.option("--check", metavar="COMMAND", help="Succeeds if an attempt did its task.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("experiment.jsonl"),
    show_default=True,
    metavar="FILE",
    help="The recording that is written.",
)
@click.option("--resume", is_flag=True, help="Go on with the recording: its attempts count.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    metavar="N",
    help=f"Attempts at each task; default: until targets are decided, else {DEFAULT_ROUNDS}.",
)
@click.option(
    "--max-runs",
    type=click.IntRange(1),
    metavar="N",
    help=f"Attempts in all; default: {DEFAULT_MAX_RUNS}, or what --repeat asks for.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="USD",
    help="US dollars that the runs may cost, by their spans.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Attempts at a time."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of an attempt; beyond it, the attempt failed.",
)
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default=PROTOCOLS[0],
    show_default=True,
    help="OTLP protocol of the agent.",
)
@click.option(
    "--vary",
    type=click.Choice((PROMPT, "structure")),
    multiple=True,
    help="Also run with other forms of the input; repeatable.",
)
@click.option(
    "--vary-with",
    metavar="COMMAND",
    help=(
        'Writes the forms for --vary prompt: it gets {"id", "input"} and prints one a line, as '
        "text or as a JSON string."
    ),
)
@click.option(
    "--fault",
    metavar="tools:RATE",
    help="Also run with this share of the tool calls failing, like tools:0.2.",
)
@click.option(
    "--fault-kind",
    "fault_kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="Kind of the faults; repeatable; default: error, timeout, empty, malformed.",
)
@click.option("--name", metavar="AGENT", help="Name of an agent of which no span arrives.")
@form("terminal", "json")
@CONFIG
@set_option("outcome.evaluations=correctness")
def command(
    tasks: Path,
    command: tuple[str, ...],
    call: str | None,
    post: str | None,
    body: str,
    headers: tuple[str, ...],
    listen: str,
    requirements: tuple[str, ...],
    against: Path | None,
    check: str | None,
    out: Path,
    resume: bool,
    repeat: int | None,
    max_runs: int | None,
    max_cost: float | None,
    jobs: int,
    timeout: float,
    protocol: str,
    vary: tuple[str, ...],
    vary_with: str | None,
    fault: str | None,
    fault_kinds: tuple[str, ...],
    name: str | None,
    form: str,
    config: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """Run an agent on tasks, again and again, until it is certain whether it meets its targets.

    \b
      otel-reliability experiment tasks.jsonl --require 'success_rate>=0.9' -- python agent.py
      otel-reliability experiment tasks.jsonl --vary prompt --fault tools:0.2 --require 'robustness>=0.8' -- python agent.py
      otel-reliability experiment tasks.csv --repeat 8 --check ./check.sh -- node agent.js {input}
      otel-reliability experiment tasks.csv --call shop.agent:answer --require 'error_rate<=0.05'
      otel-reliability experiment tasks.csv --post http://127.0.0.1:8000/chat --body '{"message": "{input}"}'

    TASKS has an id, an input and what to expect, one task an entry: {"id": "7", "input": "…",
    "expect": {"contains": "done"}}. The command gets the input in place of {input}, else on standard
    input. Its spans arrive at a receiver of the experiment, by OpenTelemetry's own variables; no
    change to the agent is needed. A service that runs already must export to --listen. An attempt succeeds if it exits with 0 and --check, the
    expectation and its spans agree.

    \b
    Exit codes, the first that applies:
      2  bad usage, or a command that cannot be started
      1  a target failed
      3  a target is undecided, or lacks data
      0  every target held
    """
    settings = settings_of(config, assignments, None, None)
    targets = [parse(text) for text in requirements]
    agent = _agent(command, call, post, body, headers)
    if post is not None:
        _check_service(listen, fault, jobs, protocol)
    found = read_tasks(tasks)
    if vary_with is not None:
        vary = (PROMPT, *vary)
    conditions = (BASELINE, *dict.fromkeys(vary), *([FAULT] if fault else ()))
    variants = {
        (condition, task.id): _variants(condition, task, vary_with)
        for condition in conditions
        if condition in vary
        for task in found
    }
    ids = {task.id for task in found}
    for target in targets:
        if target.task is not None and target.task not in ids:
            raise ConfigurationError("--require", target.task, "a task", "name one of TASKS")
    earlier = _earlier(against, ids)
    if against is not None:
        targets.append(no_loss_since(against.name))
    is_decided_early = bool(targets) and all(is_sequential(each, conditions) for each in targets)
    rounds = repeat or (None if is_decided_early else DEFAULT_ROUNDS)
    least = (rounds or 0) * len(found) * len(conditions)
    most = DEFAULT_MAX_RUNS if targets else 0
    if earlier and len(targets) == 1:
        most = min(most, len(earlier) * len(conditions))
    plan = ExperimentPlan(
        agent,
        found,
        conditions,
        targets,
        shlex.split(check or ""),
        rounds,
        max_runs or max(most, least),
        max_cost,
        jobs,
        timeout,
        protocol,
        variants,
        _rate(fault),
        fault_kinds or DEFAULT_KINDS,
        earlier,
        ANY_ADDRESS if post is None else listen,
    )
    _show_variants(variants)
    experiment = _run(plan, Journal(out, name, resume=resume), settings)
    recording = Recording(settings)
    recording.read_all([out])
    report = report_of(recording.close())
    others = [target for target in targets if not is_sequential(target, conditions)]
    checked = gate.check(report, others, settings.metrics.min_runs)
    if form == "json":
        write(json.render(_document(experiment, checked)))
    else:
        if report.agents:
            source = shlex.quote(str(out))
            show(lambda console: terminal.render(report, console, source=source))
        show(lambda console: _conclude(experiment, checked, out, console))
    sys.exit(_exit_code(experiment, checked))


def _agent(
    command: Sequence[str], call: str | None, post: str | None, body: str, headers: Sequence[str]
) -> Agent:
    """Return the agent that the command line names: exactly one of COMMAND, --call and --post."""
    given = [bool(command), call is not None, post is not None]
    if sum(given) != 1:
        what = "nothing" if not any(given) else "several"
        raise ConfigurationError(
            "the agent", what, "one of -- COMMAND, --call and --post", "say how it is run"
        )
    if call is not None:
        module, _, function = call.partition(":")
        if not module or not function:
            raise ConfigurationError("--call", call, SHAPE, "write it like shop.agent:answer")
        return called_agent(call)
    if post is None:
        if shutil.which(command[0]) is None:
            raise ConfigurationError("COMMAND", command[0], "a program", "give its path")
        return CommandAgent(command)
    if not post.startswith(("http://", "https://")):
        raise ConfigurationError("--post", post, "an HTTP address", "begin it with http://")
    pairs = [header.partition(":") for header in headers]
    for header, (name, colon, _) in zip(headers, pairs, strict=True):
        if not name.strip() or not colon:
            raise ConfigurationError("--header", header, "NAME: VALUE", "write it like 'a: b'")
    return PostedAgent(post, body, {name.strip(): value.strip() for name, _, value in pairs})


def _check_service(listen: str, fault: str | None, jobs: int, protocol: str) -> None:
    """Raise `ConfigurationError` for what cannot be had of an agent that runs already."""
    if re.match(LISTENS, listen) is None:
        raise ConfigurationError("--listen", listen, "HOST:PORT", "write it like 127.0.0.1:4318")
    if fault is not None:
        raise ConfigurationError(
            "--fault", fault, "an agent that is started for each attempt", "use COMMAND or --call"
        )
    if jobs > 1:
        raise ConfigurationError(
            "--jobs", str(jobs), "1 with --post", "its spans are distinguished by their time"
        )
    if protocol != PROTOCOLS[0]:
        raise ConfigurationError(
            "--protocol", protocol, f"{PROTOCOLS[0]} with --post", "let the service export so"
        )


def _variants(condition: str, task: Task, writer: str | None) -> list[str]:
    """Return the other forms of a task's input: those that a command writes, or its own."""
    if condition == PROMPT and writer is not None:
        return written_variants(shlex.split(writer), task.id, task.input)
    if condition == PROMPT and task.variants:
        return list(task.variants)
    return variants_of(condition, task.id, task.input)


def _earlier(path: Path | None, task_ids: Collection[str]) -> list[AttemptResult]:
    """Return the undisturbed attempts at these tasks in an earlier recording."""
    if path is None:
        return []
    found = [
        one for one in read_results(path) if one.condition == BASELINE and one.task_id in task_ids
    ]
    if not found:
        raise ConfigurationError(
            "--against", str(path), "an experiment at these tasks", "name one that has their ids"
        )
    return found


def _show_variants(variants: Mapping[tuple[str, str], Sequence[str]]) -> None:
    """Print each form of each input, before it is used."""
    for (condition, task_id), texts in variants.items():
        for text in texts:
            line = " ".join(text.split())
            print(f"{condition} of task {clean(task_id, 40)}: {clean(line, 200)}", file=sys.stderr)


def _rate(fault: str | None) -> float:
    """Return the share of tool calls that fail."""
    if fault is None:
        return 0.0
    try:
        what, _, share = fault.partition(":")
        rate = float(share) if what == "tools" else 0.0
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 1:
        raise ConfigurationError("--fault", fault, "tools:RATE", "write it like tools:0.2")
    return rate


def _run(plan: ExperimentPlan, journal: Journal, settings: Settings) -> Experiment:
    console = Console(stderr=True)
    started = time.monotonic()
    live = Live(console=console, transient=True, auto_refresh=False)

    def changed() -> None:
        if console.is_terminal:
            live.update(_page(experiment, time.monotonic() - started), refresh=True)

    experiment = Experiment(plan, journal, settings, changed)
    try:
        with live:
            asyncio.run(experiment.run())
    finally:
        decided = [f"{one.target.text}: {one.decision.value}" for one in experiment.tests]
        journal.close(decided, _verdict(experiment).value, time.time_ns())
    return experiment


def _page(experiment: Experiment, seconds: float) -> Group:
    """Return the progress: each task with its attempts, each target with its decision, the cost and
    the time left at most.
    """
    table = Table("task", "attempts", "succeeded")
    tried = Counter(one.task_id for one in experiment.results.all)
    passed = Counter(one.task_id for one in experiment.results.all if one.success)
    for id_ in experiment.results.task_ids[:MAX_TASKS]:
        share = f"{100 * passed[id_] / tried[id_]:.0f} %" if tried[id_] else ""
        table.add_row(clean(id_, 60), str(tried[id_]), share)
    rest = len(experiment.results.task_ids) - MAX_TASKS
    done = len(experiment.results.all)
    left = (experiment.plan.max_runs - done) * seconds / max(done - experiment.resumed, 1)
    lines = [*_sentences(experiment), Text(f"{_spent(experiment)}; at most {left:.0f} s left")]
    if rest > 0:
        lines.insert(0, Text(f"and {count(rest, 'more task')}", "dim"))
    return Group(table, *lines)


def _sentences(experiment: Experiment) -> list[Text]:
    return [Text(test.sentence, _COLOURS[test.decision]) for test in experiment.tests]


def _spent(experiment: Experiment) -> str:
    cost = experiment.cost
    dollars = "cost unknown" if cost is None else f"{cost:.4g} US dollars"
    return f"{count(len(experiment.results.all), 'attempt')}, {dollars}"


def _conclude(
    experiment: Experiment,
    checked: Sequence[gate.TargetResult],
    out: Path,
    console: Console,
) -> None:
    """Print what was decided, what it rests on, and what limits it."""
    for sentence in _sentences(experiment):
        console.print(sentence)
    if checked:
        gate.render(checked, (), console)
    console.print(
        Text(f"{_verdict_of(experiment, checked).value.upper()}: {_spent(experiment)}", "bold")
    )
    for note in _notes(experiment):
        console.print(Text(note, "dim"))
    console.print(Text(f"The recording is {out}.", "dim"))


def _notes(experiment: Experiment) -> list[str]:
    results = experiment.results.all
    notes: list[str] = []
    if experiment.ended_by:
        notes.append(f"The experiment ended because {experiment.ended_by}.")
    if results and all(one.source in {NO_ERROR, "exit status", "timeout"} for one in results):
        notes.append(
            "Only errors count: no check, no expectation and no span says whether an attempt "
            "succeeded. Add --check or expect."
        )
    silent = sum(not one.runs for one in results)
    if silent:
        notes.append(
            f"{count(silent, 'attempt')} of {len(results)} sent no agent run: is the agent "
            "instrumented, and does it flush its spans before it exits?"
        )
    if experiment.first_error:
        notes.append(f"The first error: {clean(experiment.first_error, 200)}")
    if experiment.tests:
        fixed = recommend_runs(HALF_WIDTH)
        saved = fixed - len(results)
        what = f"{saved} fewer here" if saved > 0 else "no fewer here"
        notes.append(f"A fixed design takes {fixed} attempts for ±5 points: {what}.")
        notes.append(
            "Rates are means over the tasks given, each with as many attempts. All targets together "
            "are decided wrongly with a probability of at most 5 %, at whatever look."
        )
    return notes


def _verdict(experiment: Experiment) -> SequentialDecision:
    """Return the joined decision of the sequential tests."""
    decisions = {test.decision for test in experiment.tests}
    return next(
        (
            one
            for one in (SequentialDecision.FAIL, SequentialDecision.UNDECIDED)
            if one in decisions
        ),
        SequentialDecision.PASS,
    )


def _verdict_of(experiment: Experiment, checked: Sequence[gate.TargetResult]) -> SequentialDecision:
    codes = {
        FAILED: SequentialDecision.FAIL,
        UNDECIDED: SequentialDecision.UNDECIDED,
        0: SequentialDecision.PASS,
    }
    return codes[_exit_code(experiment, checked)]


def _exit_code(experiment: Experiment, checked: Sequence[gate.TargetResult]) -> int:
    codes = {
        SequentialDecision.FAIL: FAILED,
        SequentialDecision.UNDECIDED: UNDECIDED,
        SequentialDecision.PASS: 0,
    }
    both = {codes[_verdict(experiment)], gate.exit_code(checked)}
    return next((code for code in (FAILED, UNDECIDED) if code in both), 0)


def _document(experiment: Experiment, checked: Sequence[gate.TargetResult]) -> dict[str, Any]:
    return {
        "verdict": _verdict_of(experiment, checked).value,
        "attempts": len(experiment.results.all),
        "cost_usd": experiment.cost,
        "fixed_design_attempts": recommend_runs(HALF_WIDTH),
        "targets": [
            {
                "target": test.target.text,
                "decision": test.decision.value,
                "attempts": test.runs,
                "value": test.mean,
                "sentence": test.sentence,
            }
            for test in experiment.tests
        ],
        "checked": gate.document(checked),
        "notes": _notes(experiment),
    }
