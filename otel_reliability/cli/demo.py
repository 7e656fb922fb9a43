"""`otel-reliability demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from otel_reliability.cli.output import show
from otel_reliability.demo import page


@click.command("demo")
@click.option("--seed", type=int, default=7, show_default=True, help="The same seed gives the same runs.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("demo-spans.jsonl"),
    show_default=True,
    metavar="FILE",
    help="Where the spans are left.",
)
def command(seed: int, output: Path) -> None:
    """See it work: six small agents run in this process under a real OpenTelemetry SDK with our span processor.

    Their live metrics are shown, and the scorecard of the spans they left in a file; both must agree, number by number.
    Nothing is sent anywhere, and no model is asked. Exits 1 if they disagree.
    """
    agreed = True

    def render(console: page.Console) -> None:
        nonlocal agreed
        agreed = page.show(output, seed, console)

    show(render)
    sys.exit(0 if agreed else 1)
