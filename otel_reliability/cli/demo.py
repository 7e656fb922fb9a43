"""`otel-reliability demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from otel_reliability.cli.interrupts import ended_as_by_ctrl_c
from otel_reliability.demo.play import Plan, play, send

STOPPED = 130
"""The exit code of who is asked to end before he has told anything."""


@click.command("demo")
@click.option("--seed", type=int, default=7, show_default=True, help="The same seed gives the same runs.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("demo-spans.jsonl"),
    show_default=True,
    metavar="FILE",
    help="Where the spans of the first rounds are left.",
)
@click.option("--once", is_flag=True, help="End when all is told, as it does where no terminal is.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    metavar="N",
    help="End after so many seconds, if it has told all by then.",
)
@click.option(
    "--pace",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="N",
    help="Seconds from one round of runs to the next, once the first rounds are over.",
)
@click.option("--endpoint", metavar="URL", help="Send the fleet's spans there by OTLP over HTTP, and start no service.")
def command(seed: int, output: Path, once: bool, seconds: float | None, pace: float, endpoint: str | None) -> None:
    """See it work: a small fleet of agents under the ordinary OpenTelemetry SDK, and the service that judges them.

    \b
      otel-reliability demo                                    until Ctrl-C; afterwards only the file of spans is left
      otel-reliability demo --once                             end when all is told
      otel-reliability demo --endpoint http://127.0.0.1:4318   only the fleet, for a service or a Collector of yours

    The service listens on free ports of this machine. No model is asked. Exits 1 if what the service tells, what the recorded
    spans tell and what our span processor tells within the agents' process differ in any number.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8")
    console = Console(highlight=False)
    plan = Plan(seed, output, once or (not console.is_terminal and endpoint is None and seconds is None), seconds, pace)
    with ended_as_by_ctrl_c():
        sys.exit(_run(plan, endpoint, console))


def _run(plan: Plan, endpoint: str | None, console: Console) -> int:
    try:
        if endpoint is not None:
            send(endpoint, plan, console)
            return 0
        return 0 if play(plan, console) else 1
    except KeyboardInterrupt:
        return STOPPED
