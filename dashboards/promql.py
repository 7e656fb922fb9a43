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

NAMED: Final = ", ".join(label for label in IDENTITY if label not in {"service_version", "window"})
"""An agent, whatever its version."""

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


RUNS_IN_WINDOW: Final = metric("window.runs")
"""How much an instance knows of an agent."""


def one(name: str, selector: str = "", when: str = "") -> str:
    """One series of a gauge for each agent. Where two instances hold it (at a move, with replicas),
    that of the instance with more runs in its window. `when` is an `offset` or `@`.

    >>> one("a", 'b="c"')[:70]
    'max without (instance, job) (a{b="c"} and on (service_namespace, servi'
    """
    some = f"{{{selector}}}" if selector else ""
    leader = f"topk by ({BY}) (1, {RUNS_IN_WINDOW}{some}{when})"
    of_leader = f"{selected(name, selector)}{when} and on ({BY}, instance, job) {leader}"
    return f"max without (instance, job) ({of_leader})"


def selected(name: str, selector: str) -> str:
    """A name, which may have labels of its own, with a selector."""
    if not selector:
        return name
    return f"{name[:-1]},{selector}}}" if name.endswith("}") else f"{name}{{{selector}}}"


def greatest(name: str, selector: str = "") -> str:
    """The greatest value of all instances for each agent: of what belongs to no window."""
    return f"max without (instance, job) ({selected(name, selector)})"


def worst(name: str, selector: str, count: int, *, highest: bool = False) -> str:
    """The agents whose value of a metric is the worst at the end of the time shown, over all of
    it: always the same series, at most `count`.
    """
    at_end = f"last_over_time({selected(name, selector)}[$__range] @ end())"
    of_each = f"{'max' if highest else 'min'} without (instance, job) ({at_end})"
    chosen = f"{'topk' if highest else 'bottomk'}({count}, {of_each})"
    return f"{one(name, selector)} and on ({BY}) {chosen}"


def cost(part: str, selector: str) -> str:
    """The points that a part of the score costs.

    >>> cost("path_entropy", 'a="b"').startswith("15 * clamp(max without (instance, job) (")
    True
    """
    return f"{PENALTIES[part]:g} * clamp({one(metric(part), selector)}, 0, 1)"


def costs(selector: str) -> str:
    """The points that each part costs, told apart by the label `part`."""
    return " or ".join(
        f'label_replace({cost(part, selector)}, "part", "{part.replace("_", " ")}", "", "")'
        for part in PENALTIES
    )


def begun(name: str, by: str, selector: str = "") -> str:
    """Where a counter rose within the last minute, or began to exist while its agent had runs: true
    for one minute, so that a mark is a line.
    """
    now = f"sum by ({by}) ({selected(name, selector)})"
    before = f"sum by ({by}) ({selected(name, selector)} offset 1m)"
    known = f"sum by ({WHO}) ({selected(sample_of(names.RUNS), selector)} offset 1m)"
    return f"({now} - {before} > 0) or (({now} unless {before}) and on ({WHO}) {known})"


def rate(spec: Instrument, selector: str = "", over: str = "$__rate_interval") -> str:
    """What comes to a counter in a minute, whatever the zoom."""
    return f"60 * {per_second(spec, selector, over)}"


def per_second(
    spec: Instrument, selector: str = "", over: str = "$__rate_interval", suffix: str = ""
) -> str:
    """What comes to a counter, or to a part of a histogram, in a second."""
    return f"rate({selected(sample_of(spec) + suffix, selector)}[{over}])"


def quantile(at: float, spec: Instrument, selector: str, over: str, by: str = "le") -> str:
    """A quantile of a histogram."""
    filled = f"sum by ({by}) ({per_second(spec, selector, over, '_bucket')})"
    return f"histogram_quantile({at}, {filled})"


def increase(
    spec: Instrument, selector: str = "", over: str = "$__rate_interval", suffix: str = ""
) -> str:
    """What came to a counter, or to a part of a histogram, in a while."""
    return f"increase({selected(sample_of(spec) + suffix, selector)}[{over}])"
