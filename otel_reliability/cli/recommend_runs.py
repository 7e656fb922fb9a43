"""`otel-reliability recommend-runs`."""

from __future__ import annotations

import click

from otel_reliability.cli.options import COUNT
from otel_reliability.metrics.passes import confidence_band, recommend_runs


@click.command("recommend-runs")
@click.option(
    "--half-width", default="0.05", show_default=True, metavar="SHARE", help="How near the pass rate must be known."
)
@click.option("--confidence", type=int, default=95, show_default=True, metavar="90|95|99", help="How sure, in percent.")
@click.option("--runs", callback=COUNT, metavar="N", help="The other way round: what so many runs tell.")
def command(half_width: str, confidence: int, runs: int | None) -> None:
    """How many runs it takes until a pass rate is known to within a half-width, whatever the rate is.

    \b
      otel-reliability recommend-runs --half-width 0.05 --confidence 95     385 runs
      otel-reliability recommend-runs --runs 100                            ± 9.8 points

    N = ⌈(z / h)² · ¼⌉, the normal approximation in the worst case, a rate of one half.
    """
    if runs is not None:
        band = confidence_band(runs, confidence) * 100
        click.echo(f"{runs:,} runs tell a pass rate to within ±{band:.1f} points at {confidence} % confidence.")
        return
    needed = recommend_runs(half_width, confidence)
    points = float(half_width) * 100
    click.echo(f"{needed:,} runs tell a pass rate to within ±{points:g} points at {confidence} % confidence.")
