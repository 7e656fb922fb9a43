"""The configurations that are shipped, and what a test redirects in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.real.collector.handle import Collector, Collectors, Config
from tests.real.pipelines import to_file

FOLDER = Path(__file__).parents[2] / "collector_config"
NOT_RUN = "load-balancing.yaml"
"""Its exporter cannot be had where these tests run."""
BACKEND = {"BACKEND_ENDPOINT": "127.0.0.1:9", "BACKEND_INSECURE": "true"}
"""Nobody: the other back end is no part of what is tested."""


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.yaml"))


def parsed(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / name).read_text())


def spans_too(pipeline: str, exporter: str, out: Path) -> Config:
    """An overlay under which a pipeline writes its spans to a file as well."""
    return {
        "exporters": {"file": to_file(out)},
        "service": {"pipelines": {pipeline: {"exporters": [exporter, "file"]}}},
    }


def at_port(address: str) -> Config:
    """An overlay under which Prometheus' exporter stands at an address of the test's."""
    return {"exporters": {"prometheus": {"endpoint": address}}}


def shipped(
    collector: Collectors, name: str, *, overlay: Config | None = None, **env: str
) -> Collector:
    return collector(
        FOLDER / name, overlay=overlay, env={"OTEL_RELIABILITY_INSECURE": "true", **BACKEND, **env}
    )
