"""Run a real OpenTelemetry Collector."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from tests.real.ports import HOST, free_port
from tests.real.process import Process, Programs
from tests.real.web import ask

Config = Mapping[str, Any] | Path
"""A configuration as a mapping, or the path of a YAML file."""


class Collector(Process):
    """One Collector with its OTLP receiver and its own metrics on free ports of loopback.

    Whatever addresses the configuration gives to the receiver `otlp`, to the extension
    `health_check` and to the Collector's own metrics, these ports replace them, so that a shipped
    configuration runs as it is. `overlay` is merged in last, for the rest of what a test must
    redirect: maps merge key by key, lists replace.
    """

    def __init__(
        self, program: Path, folder: Path, config: Config, overlay: Config, env: Mapping[str, str]
    ) -> None:
        self.grpc = f"{HOST}:{free_port()}"
        self.http = f"http://{HOST}:{free_port()}"
        metrics_port = free_port()
        self.metrics_url = f"http://{HOST}:{metrics_port}/metrics"
        layers = (config, self._own_ports(metrics_port), overlay)
        super().__init__(
            "collector",
            command_line(program, folder, *layers),
            log=folder / "collector.log",
            ready=lambda process: (
                "Everything is ready. Begin running and processing data." in process.said()
            ),
            env=env,
        )

    def _own_ports(self, metrics_port: int) -> Config:
        protocols = {
            "grpc": {"endpoint": self.grpc},
            "http": {"endpoint": urlsplit(self.http).netloc},
        }
        reader = {"pull": {"exporter": {"prometheus": {"host": HOST, "port": metrics_port}}}}
        return {
            "receivers": {"otlp": {"protocols": protocols}},
            "extensions": {"health_check": {"endpoint": f"{HOST}:{free_port()}"}},
            "service": {"telemetry": {"metrics": {"readers": [reader]}}},
        }

    def count(self, name: str, **labels: str) -> float:
        """The sum of one of the Collector's own counters over the series that have these labels; 0
        before its first.

        The name as its documentation gives it: `otelcol_exporter_sent_spans`.
        """
        wanted = labels.items()
        return sum(
            sample.value
            for family in text_string_to_metric_families(ask(self.metrics_url).text)
            for sample in family.samples
            if sample.name.removesuffix("_total") == name and wanted <= sample.labels.items()
        )


class Collectors(Programs):
    """Makes Collectors for one test."""

    def __init__(self, program: Path, folder: Path, running: ExitStack) -> None:
        super().__init__(folder, running)
        self._program = program

    def __call__(
        self, config: Config, *, overlay: Config | None = None, env: Mapping[str, str] | None = None
    ) -> Collector:
        return self.started(
            Collector(self._program, self.new_folder("collector"), config, overlay or {}, env or {})
        )

    def complaint(self, config: Config, *, env: Mapping[str, str] | None = None) -> str:
        """What the Collector's `validate` has against a configuration; empty where
        it has nothing.
        """
        command = command_line(self._program, self.new_folder("collector"), config, verb="validate")
        done = subprocess.run(
            command,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return "" if done.returncode == 0 else done.stderr


def command_line(
    program: Path, folder: Path, *layers: Config, verb: str | None = None
) -> list[str]:
    """The command of a Collector over layers of configuration, of which a later one wins."""
    paths = [_written(layer, folder / f"config-{place}.yaml") for place, layer in enumerate(layers)]
    return [str(program), *([verb] if verb else []), *(f"--config=file:{path}" for path in paths)]


def _written(config: Config, path: Path) -> Path:
    if isinstance(config, Path):
        return config
    path.write_text(json.dumps(config, indent=1))  # every JSON text is also a YAML text
    return path
