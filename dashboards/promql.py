"""Questions to Prometheus, made of the names that the package emits and of nothing else."""

from __future__ import annotations

from typing import Final

from otel_reliability import metrics
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.telemetry import names
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.prometheus import family_of

IDENTITY: Final = (
    "service_namespace",
    "service_name",
    "deployment_environment_name",
    "gen_ai_agent_name",
    "service_version",
    "window",
)
"""What tells one agent's series from another's. Labels that an installation does not have do no
harm in `by` and `on`.
"""
BY: Final = ", ".join(IDENTITY)
WHO: Final = ", ".join(label for label in IDENTITY if label != "window")
"""An agent, whatever the window: counters and histograms have none."""

ALL: Final[dict[str, Instrument]] = {
    spec.name: spec
    for spec in (
        *names.gauges(),
        *names.COUNTERS,
        *names.HISTOGRAMS,
        *names.STANDARD,
        *names.SELF,
        *names.SERVICE,
    )
}


def sample_of(spec: Instrument) -> str:
    """The name under which Prometheus keeps it; of a histogram, without `_bucket`, `_sum` or
    `_count`.

    >>> sample_of(names.RUNS), sample_of(names.PATH_DISTANCE)
    ('agent_reliability_runs_total', 'agent_reliability_run_path_distance')
    """
    return family_of(spec) + ("_total" if spec.kind == "counter" else "")


def metric(name: str) -> str:
    """The gauge of a metric of the table.

    >>> metric("path_entropy")
    'agent_reliability_path_entropy'
    """
    return sample_of(ALL[names.PREFIX + metrics.ALL_SPECS[name].name])


def one(expression: str) -> str:
    """One series an agent, also while two instances of a service tell of it: at a restart, at a
    move.
    """
    return f"max without (instance, job) ({expression})"


def cost(part: str, selector: str) -> str:
    """The points that a part of the score costs.

    >>> cost("path_entropy", 'gen_ai_agent_name="a"')
    '15 * clamp(max without (instance, job) (agent_reliability_path_entropy{gen_ai_agent_name="a"}), 0, 1)'
    """
    return f"{PENALTIES[part]:g} * clamp({one(f'{metric(part)}{{{selector}}}')}, 0, 1)"


def costs(selector: str) -> str:
    """The points that each part costs, told apart by the label `part`."""
    return " or ".join(
        f'label_replace({cost(part, selector)}, "part", "{part.replace("_", " ")}", "", "")'
        for part in PENALTIES
    )


def newly(by: str, selector: str, ago: str) -> str:
    """Changes of behaviour that were not there a while ago. Their counter begins at 1, so an
    increase would miss the first.
    """
    told = f"{sample_of(names.CHANGES)}{{{selector}}}" if selector else sample_of(names.CHANGES)
    first = f"sum by ({by}) ({told}) unless sum by ({by}) ({told} offset {ago})"
    return f"(sum by ({by}) (increase({told}[{ago}])) > 0) or ({first})"


def increase(
    spec: Instrument, selector: str = "", over: str = "$__rate_interval", suffix: str = ""
) -> str:
    """What came to a counter, or to a part of a histogram, in a while."""
    return f"increase({sample_of(spec)}{suffix}{{{selector}}}[{over}])"
