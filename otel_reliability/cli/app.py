"""The commands by name, each loaded when it is used, and the handling of errors."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click

from otel_reliability.errors import ReliabilityError

BAD_USAGE: Final = 2
"""Exit code of bad usage, invalid settings, and input that cannot be opened."""

ABOUT: Final = """\
Measure how reliable AI agents are, from the OpenTelemetry spans they already emit.

\b
  otel-reliability demo                     see it work, within a minute
  otel-reliability report spans.jsonl       a scorecard of each agent in recorded spans
  otel-reliability gate spans.jsonl --require 'score>=80'
  otel-reliability explain path_entropy     what a metric means

FILE is OTLP-JSON lines, as the Collector's file exporter writes them (plain, gzip, zstd, or - for
standard input), another export of spans, or session files of coding agents, also by folder; a kind
that is not read is named, with what works instead. No prompt, argument or result text is ever shown or kept.
"""


COMMANDS: Final[Mapping[str, str]] = {
    "demo": "See it work: a small fleet of agents, and the service that finds the unreliable one.",
    "inspect": "Show what is recognized in your traces and what is not. Start here.",
    "report": "Print a scorecard of each agent: score, reasons, missing data; badges.",
    "fetch": "Fetch traces from Jaeger, Tempo, Phoenix, MLflow, Langfuse or LangSmith.",
    "runs": "Print the runs that were rebuilt from spans, one JSON object a line.",
    "change": "Detect whether an agent's behaviour changed, since when, and by which signals.",
    "gate": "Check a recording against targets, for CI; exits 1 where one fails.",
    "experiment": "Run an agent on tasks until it is certain whether it meets its targets.",
    "fault-proxy": "Start an MCP server whose tools fail where an experiment asks for it.",
    "explain": "Explain a metric: its meaning, formula, and how to improve it.",
    "sample-size": "Compute how many runs a pass rate needs.",
    "serve": "Receive OTLP, export metrics: the service next to a Collector.",
    "kafka": "Run the same stages as workers of a Kafka consumer group.",
    "mcp": "Answer an assistant's questions about agents (Model Context Protocol).",
    "dashboards": "Write Grafana dashboards and alert rules.",
}
"""Summary of each command, in the order of the help."""


_NUMPY_THREADS: Final = "OPENBLAS_NUM_THREADS"


@contextmanager
def _one_thread_for_numpy() -> Generator[None]:
    """Let numpy, where it is imported now, begin no threads: our products are small, and its
    threads wait for them busily. Programs that a command starts do not inherit that.
    """
    given = os.environ.get(_NUMPY_THREADS)
    os.environ.setdefault(_NUMPY_THREADS, "1")
    try:
        yield
    finally:
        if given is None:
            del os.environ[_NUMPY_THREADS]


class Commands(click.Group):
    """A group that loads a command when it is used, so that none waits for the
    packages of another.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with _one_thread_for_numpy():
            module = importlib.import_module(f"otel_reliability.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command for an unknown one."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}."
            ctx.fail(f"{name!r} is not a command; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table: help loads no command."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Print errors of ours in one line, and exit 2."""
        try:
            return super().invoke(ctx)
        except ReliabilityError as error:
            print(f"otel-reliability: {error}", file=sys.stderr)
            ctx.exit(BAD_USAGE)


@click.group(
    cls=Commands,
    help=ABOUT,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="otel-reliability")
def app() -> None:
    """Parse what is common to all commands: nothing."""
