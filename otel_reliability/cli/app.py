"""The commands by name, each loaded when it is asked for, and what becomes of errors."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click

from otel_reliability.errors import ReliabilityError

BAD_USAGE: Final = 2
"""The exit code of bad usage, settings that cannot be, and input that cannot be opened."""

ABOUT: Final = """How reliable are your AI agents? Asked of the OpenTelemetry spans they already emit.

\b
  otel-reliability demo                     see it work, within a minute
  otel-reliability report spans.jsonl       a scorecard of recorded spans
  otel-reliability explain path_entropy     what a number means

Spans are read from OTLP-JSON lines, as the Collector's file exporter writes them: plain, gzip, zstd, or - for standard
input. No prompt, argument or result text is ever shown or kept.
"""


class Command(NamedTuple):
    """Where a command is, and what it does in a few words."""

    module: str
    summary: str


COMMANDS: Final[Mapping[str, Command]] = {
    "inspect": Command("inspect", "What was recognised in your traces and what was not. Start here."),
    "report": Command("report", "A scorecard of each agent: what it is worth, why, and what would tell more."),
    "runs": Command("runs", "The runs that were rebuilt from spans, one JSON object a line."),
    "change": Command("change", "Has an agent's behaviour changed? Since when, and by which signals."),
    "watch": Command("watch", "All agents as they are now, in the terminal: of a running service, or a growing file."),
    "gate": Command("gate", "Hold a recording against targets; exits 1 where one fails."),
    "badge": Command("badge", "The badge of an agent: text, SVG, or JSON for shields.io."),
    "explain": Command("explain", "What a number means, how it is made, how to improve it."),
    "recommend-runs": Command("recommend_runs", "How many runs a pass rate needs."),
    "serve": Command("serve", "Take OTLP, give metrics: the service beside a Collector."),
    "kafka": Command("kafka", "The same past one machine: workers of a Kafka consumer group."),
    "check-config": Command("check_config", "Check the settings of a service without starting it."),
    "dashboards": Command("dashboards", "Write Grafana dashboards and alerts, for what the service tells."),
    "demo": Command("demo", "A small fleet of agents, and the service that tells which of them is unreliable."),
}
"""In the order of the help."""


class Commands(click.Group):
    """Loads a command when it is asked for, so that none waits for the packages of another."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"otel_reliability.cli.{COMMANDS[cmd_name].module}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what may have been meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}."
            ctx.fail(f"{name!r} is not a command; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table: help loads no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Errors of ours are told in one line, and exit 2."""
        try:
            return super().invoke(ctx)
        except ReliabilityError as error:
            print(f"otel-reliability: {error}", file=sys.stderr)
            ctx.exit(BAD_USAGE)


@click.group(
    cls=Commands, help=ABOUT, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="otel-reliability")
def app() -> None:
    """Parse what is common to all commands: nothing."""
