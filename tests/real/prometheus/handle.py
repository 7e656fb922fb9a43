"""Run a real Prometheus server, and its checker of rules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.ports import HOST, free_port
from tests.real.process import Process, Programs
from tests.real.prometheus.promql import PromQL
from tests.real.web import answers


class Prometheus(Process):
    """One server on a free port of loopback, with an empty store and the questions one can put to
    it in `ask`.
    """

    def __init__(
        self, program: Path, folder: Path, config: Mapping[str, Any], flags: Sequence[str]
    ) -> None:
        self.address = f"{HOST}:{free_port()}"
        self.url = f"http://{self.address}"
        self.write_url = f"{self.url}/api/v1/write"
        self.ask = PromQL(self.url)
        written = folder / "prometheus.yaml"
        written.write_text(json.dumps(config, indent=1))  # every JSON text is also a YAML text
        command = [
            program,
            f"--config.file={written}",
            f"--storage.tsdb.path={folder / 'store'}",
            f"--web.listen-address={self.address}",
            "--web.enable-remote-write-receiver",
            "--enable-feature=exemplar-storage",
            *flags,
        ]
        super().__init__(
            "prometheus",
            command,
            log=folder / "prometheus.log",
            ready=lambda _: answers(f"{self.url}/-/ready"),
        )


class Prometheuses(Programs):
    """Makes Prometheus servers for one test."""

    def __init__(self, program: Path, folder: Path, running: ExitStack) -> None:
        super().__init__(folder, running)
        self.program = program

    def __call__(
        self,
        scrape: Mapping[str, str | Mapping[str, Any]] | None = None,
        *,
        rules: Sequence[Path] = (),
        every: str = "250ms",
        flags: Sequence[str] = (),
    ) -> Prometheus:
        """Start a server that scrapes these jobs and keeps these rules, both at one interval.

        A job is an address (`127.0.0.1:9464`, path /metrics) or a whole `scrape_configs` entry
        without `job_name`.
        """
        config = {
            "global": {
                "scrape_interval": every,
                "scrape_timeout": every,
                "evaluation_interval": every,
            },
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [_job(name, job) for name, job in (scrape or {}).items()],
        }
        return self.started(Prometheus(self.program, self.new_folder("prometheus"), config, flags))


def _job(name: str, job: str | Mapping[str, Any]) -> Mapping[str, Any]:
    entry = {"static_configs": [{"targets": [job]}]} if isinstance(job, str) else job
    return {"job_name": name, **entry}


@dataclass(frozen=True)
class Promtool:
    """Debian's promtool: `promtool("check", "rules", path)`."""

    program: Path

    def __call__(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run it once; `returncode` is 0 where it found nothing wrong."""
        command = [str(self.program), *map(str, arguments)]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, timeout=60
        )
