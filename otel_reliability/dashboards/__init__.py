"""Dashboards and alerts for Grafana and Prometheus, as files that the package ships, and what
adapts them to an installation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple

from otel_reliability.errors import ConfigurationError

FILES: Final[Mapping[str, PurePosixPath]] = {
    "fleet.json": PurePosixPath("grafana/dashboards/fleet.json"),
    "agent.json": PurePosixPath("grafana/dashboards/agent.json"),
    "provider.yaml": PurePosixPath("grafana/provisioning/dashboards/otel-reliability.yaml"),
    "alerting.yaml": PurePosixPath("grafana/provisioning/alerting/otel-reliability.yaml"),
    "rules.yaml": PurePosixPath("prometheus/rules/otel-reliability.yaml"),
    "alerts.md": PurePosixPath("alerts.md"),
}
"""Files that are shipped, and where it goes below a folder."""

OF_FLEET: Final = ("fleet.json", "rules.yaml", "alerting.yaml")
"""The files that are about all agents: without the dashboard of one, which asks for most series."""

_NAME: Final = re.compile(r"\b(?:agent|otel)_reliability_\w+")
BUDGET: Final = "      - record: agent:reliability_error_budget_left:increase30d\n"
"""First words of the rule that records the budget left of a period."""
UID: Final = "prometheus"
RUNBOOK: Final = "alerts.md"
FLEET: Final = "/d/otel-reliability-fleet"
"""Address that alerts on the service lead to in Grafana."""
AGENT: Final = (
    "/d/otel-reliability-agent?var-namespace={{ .Labels.service_namespace | urlquery }}"
    "&var-environment={{ .Labels.deployment_environment_name | urlquery }}"
    "&var-service={{ .Labels.service_name | urlquery }}"
    "&var-agent={{ .Labels.gen_ai_agent_name | urlquery }}"
)
"""Address that alerts on an agent lead to in Grafana."""
PAGE: Final = "/agents/{{ .Labels.service_name }}/{{ .Labels.gen_ai_agent_name }}"
"""The page of that agent in the UI."""


class Installation(NamedTuple):
    """The parts that differ between installations: the data source, where runbooks and
    the UI are, the periods of objectives.
    """

    uid: str = UID
    runbooks: str = RUNBOOK
    ui: str | None = None
    periods: tuple[float, ...] = ()
    """The periods of the objectives, in seconds; none: 30 days."""


def adapted(installation: Installation) -> Iterator[tuple[PurePosixPath, str]]:
    """Every file for an installation, with its path below a folder."""
    for name, path in FILES.items():
        yield (
            path,
            _adapted(
                name, files(__name__).joinpath(name).read_text(encoding="utf-8"), installation
            ),
        )


def samples(names: Iterable[str] = FILES) -> frozenset[str]:
    """Return the names of the samples in Prometheus that these files ask for: of a histogram its
    buckets, its sum, its count.
    """
    texts = (files(__name__).joinpath(name).read_text(encoding="utf-8") for name in names)
    return frozenset(name for text in texts for name in _NAME.findall(text))


def scraped(series: Literal["all", "dashboards", "fleet"]) -> frozenset[str] | None:
    """Return the names of the samples of agents that a scrape has by `service.series`; None:
    all.
    """
    if series == "all":
        return None
    return samples(OF_FLEET if series == "fleet" else FILES)


def _adapted(name: str, text: str, installation: Installation) -> str:
    if name.endswith(".json"):
        return _dashboard(text, installation)
    if installation.uid != UID:
        text = text.replace(
            f"datasourceUid: {UID}\n", f"datasourceUid: {json.dumps(installation.uid)}\n"
        )
    if name == "rules.yaml" and installation.periods:
        text = _with_budgets(text, installation.periods)
    runbooks = installation.runbooks
    if installation.ui is not None:
        url = installation.ui.rstrip("/")
        runbooks = f"{url}/alerts" if runbooks == RUNBOOK else runbooks
        text = text.replace(f"dashboard: {FLEET}\n", f"dashboard: {url}/\n").replace(
            AGENT, f"{url}{PAGE}"
        )
    return text.replace(f"runbook_url: {RUNBOOK}#", f"runbook_url: {runbooks}#")


def _with_budgets(text: str, periods: Iterable[float]) -> str:
    """Record the budget left of each of these periods, in place of that of 30 days."""
    begin = text.index(BUDGET)
    end = text.index("  - name:", begin)
    rules = ""
    for period in sorted(set(periods)):
        days = f"{period / 3600:g}h" if period % 86_400 else f"{period / 86_400:g}d"
        rule = text[begin:end].replace("30d", days).replace(f"{30 * 86_400}", f"{period:.0f}")
        rules += rule
    return text[:begin] + rules + text[end:]


def _dashboard(text: str, installation: Installation) -> str:
    """With this data source chosen, until a reader chooses another."""
    board: dict[str, Any] = json.loads(text)
    for variable in board["templating"]["list"]:
        if variable["type"] == "datasource":
            variable["current"] = {
                "selected": True,
                "text": installation.uid,
                "value": installation.uid,
            }
    return json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write(folder: Path, installation: Installation, *, force: bool = False) -> list[Path]:
    """Write them all below a folder. Nothing is written where one of them stands already, unless by
    `force`.
    """
    told = [(folder / path, text) for path, text in adapted(installation)]
    standing = [path for path, _ in told if path.exists()]
    if standing and not force:
        raise ConfigurationError(
            "DIR",
            str(standing[0]),
            "a file that is not there yet",
            "choose another folder, or overwrite them all with --force",
        )
    for path, text in told:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [path for path, _ in told]
