"""Run real trace stores: they take OTLP, and are read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tests.real.otlp import replay
from tests.real.ports import HOST, free_port
from tests.real.process import Process
from tests.real.web import answers, ask

PATIENCE_S = 600.0
"""Seconds to come up: a store in Python makes its database first, 15 s of work on an idle machine.
"""


class Store(Process):
    """A trace store on free ports of loopback: `url` is where it is read, `otlp_url` where it takes
    telemetry.
    """

    alive: ClassVar[str]
    """A path that answers once the store is up."""
    headers: ClassVar[Mapping[str, str]] = {}
    """What a request of telemetry needs."""
    ends_within_s: ClassVar[float] = 20.0
    """Seconds to end in; then it is killed."""

    def __init__(
        self,
        command: Sequence[str | Path],
        folder: Path,
        url: str,
        otlp_url: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.url = url
        self.otlp_url = otlp_url
        name = type(self).__name__.lower()
        super().__init__(
            name,
            command,
            log=folder / f"{name}.log",
            ready=lambda _: answers(self.url + self.alive),
            env=env,
            patience=PATIENCE_S,
        )

    def fill(self, recording: Path) -> None:
        """Send a recording."""
        replay(recording, self.otlp_url, self.headers)

    def is_settled(self) -> bool:
        """Return whether all that was sent is there: most stores answer when it is."""
        return True


class Jaeger(Store):
    """Jaeger, all parts in one program, its storage in memory. It waits for its clients to end."""

    alive = "/api/v3/services"
    ends_within_s = 1.0

    def __init__(self, component: Path, folder: Path) -> None:
        query = f"{HOST}:{free_port()}"
        receiver = f"{HOST}:{free_port()}"
        ports = {
            "collector.otlp.http": receiver,
            "query.http-server": query,
            **{
                server: f"{HOST}:{free_port()}"
                for server in (
                    *("collector.otlp.grpc", "collector.grpc-server", "collector.http-server"),
                    *("query.grpc-server", "admin.http"),
                )
            },
        }
        addresses = [f"--{server}.host-port={address}" for server, address in ports.items()]
        command = [component / "bin" / "jaeger", *addresses]
        super().__init__(command, folder, f"http://{query}", f"http://{receiver}")


class Phoenix(Store):
    """Phoenix on SQLite. What names no project is in the project `default`."""

    alive = "/v1/projects"

    def __init__(self, component: Path, folder: Path) -> None:
        port = free_port()
        url = f"http://{HOST}:{port}"
        env = {
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_HOST": HOST,
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(free_port()),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        python = component / "environment" / "bin" / "python"
        command = [python, "-m", "phoenix.server.main", "serve"]
        super().__init__(command, folder, url, url, env)
        self._spans = -1

    def is_settled(self) -> bool:
        """Return whether no span has come since the last call: a queue is behind its receiver."""
        before = self._spans
        counted = ask(f"{self.url}/v1/projects/default/traces?include_spans=true&limit=1000")
        self._spans = len(counted.body)
        return self._spans == before


class Mlflow(Store):
    """An MLflow server on SQLite, and its default experiment."""

    alive = "/version"
    headers: ClassVar[Mapping[str, str]] = {"x-mlflow-experiment-id": "0"}

    def __init__(self, component: Path, folder: Path) -> None:
        port = free_port()
        url = f"http://{HOST}:{port}"
        python = component / "environment" / "bin" / "python"
        database = f"sqlite:///{folder / 'mlflow.db'}"
        where = ("--host", HOST, "--port", str(port), "--workers", "1")
        kept = ("--backend-store-uri", database, "--artifacts-destination", str(folder))
        env = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        command = [python, "-m", "mlflow", "server", *where, *kept]
        super().__init__(command, folder, url, url, env)
