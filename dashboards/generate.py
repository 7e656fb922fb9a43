"""Write the dashboards, the alerts and their runbook: `make docs`. A test fails when a file has
fallen behind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # so that it can be started as a file

from dashboards import agent, fleet, rules  # noqa: E402
from dashboards.board import json_of  # noqa: E402
from otel_reliability.dashboards import FILES  # noqa: E402

MADE: Final[Mapping[str, Callable[[], str]]] = {
    "fleet.json": lambda: json_of(fleet.board()),
    "agent.json": lambda: json_of(agent.board()),
    "provider.yaml": rules.dashboard_provider,
    "alerting.yaml": rules.grafana_alerts,
    "rules.yaml": rules.prometheus_rules,
    "alerts.md": rules.runbook,
}


def places(name: str) -> tuple[Path, ...]:
    """Return the files to write: in the package, which ships them; YAML and the runbook also where
    this project uses them.
    """
    shipped = ROOT / "otel_reliability" / "dashboards" / name
    if name.endswith(".json"):
        return (shipped,)
    return (
        shipped,
        ROOT / "docs" / "guides" / name if name == "alerts.md" else ROOT / "docker" / FILES[name],
    )


if __name__ == "__main__":
    for made, write in MADE.items():
        for place in places(made):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(write(), encoding="utf-8")
            print(place)
