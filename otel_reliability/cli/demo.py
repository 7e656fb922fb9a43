"""`otel-reliability demo`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from otel_reliability.demo import FILE
from otel_reliability.demo.show import play, send

INTERRUPTED = 130
"""Exit code of a demo that is stopped before its result."""


@click.command("demo")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path(FILE),
    show_default=True,
    metavar="FILE",
    help="File that the spans of the first rounds are written to.",
)
@click.option("--once", is_flag=True, help="End after the result.")
@click.option(
    "--pace",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="N",
    help="Seconds from one round of runs to the next, after the first rounds.",
)
@click.option(
    "--endpoint",
    metavar="URL",
    help="Send the fleet's spans there by OTLP over HTTP, and start no service.",
)
def command(output: Path, once: bool, pace: float, endpoint: str | None) -> None:
    """See it work: the recorded spans of a small fleet of agents, and the service that finds the
    unreliable one.

    \b
      otel-reliability demo                                    until Ctrl-C; only the file of spans is left
      otel-reliability demo --once                             end after the result
      otel-reliability demo --endpoint http://127.0.0.1:4318   only the fleet, for your own service or Collector

    The service listens on free ports of this machine. No model is called.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8")
    console = Console(highlight=False)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # as Ctrl-C: the first process of a container ignores it
    try:
        if endpoint is None:
            play(output, console, once=once, pace=pace)
        else:
            send(endpoint, console, once=once, pace=pace)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
