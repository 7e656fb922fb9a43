"""`otel-reliability sample-size`."""

from __future__ import annotations

import click

from otel_reliability.metrics.passes.run_counts import confidence_band, recommend_runs


@click.command("sample-size")
@click.option(
    "--half-width",
    default="0.05",
    show_default=True,
    metavar="SHARE",
    help="Half the width of the interval.",
)
@click.option(
    "--confidence",
    type=int,
    default=95,
    show_default=True,
    metavar="90|95|99",
    help="Confidence in percent.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    metavar="N",
    help="The other way round: the interval of so many runs.",
)
def command(half_width: str, confidence: int, runs: int | None) -> None:
    """Compute how many runs a pass rate needs to be known to within a half-width, whatever the rate
    is.

    \b
      otel-reliability sample-size --half-width 0.05 --confidence 95     385 runs
      otel-reliability sample-size --runs 100                            ± 9.8 points

    N = ⌈(z / h)² · ¼⌉, the normal approximation in the worst case, a rate of one half.
    """
    if runs is not None:
        band = confidence_band(runs, confidence) * 100
        click.echo(
            f"{runs:,} runs give a pass rate to within ±{band:.1f} points at {confidence} "
            "% confidence."
        )
        return
    needed = recommend_runs(half_width, confidence)
    points = float(half_width) * 100
    click.echo(
        f"{needed:,} runs give a pass rate to within ±{points:g} points at {confidence} % "
        "confidence."
    )
