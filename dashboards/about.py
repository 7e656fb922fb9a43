"""What a panel says of itself: what it means, what a good value is, and what to
do about another.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_reliability import metrics
from otel_reliability.model.reading import MetricSpec


class About(NamedTuple):
    """The description of a panel, and what stands in it where there is no data."""

    means: str
    good: str
    do: str
    empty: str = "No data"

    @property
    def text(self) -> str:
        """As Grafana shows it, in Markdown."""
        return (
            f"**What it means.** {self.means}\n\n**Good.** {self.good}\n\n**What to do.** {self.do}"
        )


_GOOD: Final = {
    "lower": "The lower the better",
    "higher": "The higher the better",
    "neutral": "Neither high nor low is better",
}


def of_metric(name: str, more: str = "") -> About:
    """From the table of metrics."""
    spec = metrics.ALL_SPECS[name]
    return About(
        f"{spec.description}{more}",
        good(spec),
        advice(spec),
        f"No data: needs {spec.required_data}",
    )


def of_metrics(means: str, *told: str, empty: str = "") -> About:
    """Of several metrics at once, each with its own sentence."""
    specs = [metrics.ALL_SPECS[name] for name in told]
    listed = "\n".join(f"- *{spec.title}*: {spec.description} {good(spec)}" for spec in specs)
    ways = dict.fromkeys(advice(spec) for spec in specs)
    need = empty or f"No data: needs {specs[0].required_data}"
    return About(f"{means}\n\n{listed}", "As each line above says.", " ".join(ways), need)


def good(spec: MetricSpec) -> str:
    """What a good value is, in a sentence.

    >>> good(metrics.ALL_SPECS["path_entropy"])
    'The lower the better, from 0 to 1.'
    """
    low = "" if spec.low is None else f", from {spec.low:g}"
    high = "" if spec.high is None else f" to {spec.high:g}"
    return f"{_GOOD[spec.direction]}{low}{high}."


def advice(spec: MetricSpec) -> str:
    """What to do, followed to where it stands: some metrics refer to another's advice.

    >>> advice(metrics.ALL_SPECS["modal_path_share"]) == metrics.ALL_SPECS["path_entropy"].improve
    True
    """
    if not spec.improve.startswith("As for "):
        return spec.improve
    title = spec.improve.removeprefix("As for ").removeprefix("the ").rstrip(".").lower()
    for other in metrics.ALL_SPECS.values():
        if other.title.lower() == title or other.name == title:
            return other.improve
    return spec.improve
