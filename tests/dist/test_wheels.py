"""What `make dist` builds, installed into an empty environment: README's three ways of use work as
written there.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import FENCE, ROOT, SHELLS
from tests.real.ports import HOST, free_port
from tests.real.waiting import until
from tests.real.web import answers, ask

pytestmark = pytest.mark.real

VERSION: Final = ".".join(map(str, sys.version_info[:2]))
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
AGENT: Final = """
from opentelemetry import trace

tracer = trace.get_tracer("agent")
for run in range(12):
    with tracer.start_as_current_span("invoke_agent", attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support",
    }):
        with tracer.start_as_current_span("execute_tool", attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
        }):
            pass
"""
"""An agent, as OpenTelemetry's starter runs it."""
PROVIDERS: Final = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider

metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter())]))
tracer_provider = TracerProvider()
trace.set_tracer_provider(tracer_provider)
"""
"""What an agent that sets up its own providers has already."""


class Installed:
    """The wheels in an environment of their own, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "env" / "bin"
        self.work = folder / "work"
        self.work.mkdir()
        self.wheels = Path(os.environ.get("OTEL_RELIABILITY_WHEELS", folder / "dist"))
        tools = Path(sys.executable).parent
        build = ["make", "--old-file=.venv/ready", "dist", f"BIN={tools}", f"DIST={self.wheels}", f"VERSIONS={VERSION}"]
        if "OTEL_RELIABILITY_WHEELS" not in os.environ:
            subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        venv.create(folder / "env")
        install = [
            *(tools / "uv", "pip", "install", "--quiet", "--python", self.bin / "python"),
            *("--constraint", ROOT / "requirements.lock", "--find-links", self.wheels),
            *("otel-reliability[service]", "otel-reliability-native", "opentelemetry-distro"),
        ]
        subprocess.run(install, cwd=self.work, check=True)
        self.env = {
            **{name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ},
            "PATH": f"{self.bin}:/usr/bin:/bin",
        }

    def shell(self, script: str, env: Mapping[str, str] | None = None) -> str:
        """Run a block of README, and return its output."""
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=self.work, env={**self.env, **(env or {})}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def blocks(heading: str, languages: Sequence[str]) -> list[str]:
    """Return the blocks of code of a section of README, without the lines that install from a
    clone.
    """
    section = README.partition(f"\n### {heading}\n")[2]
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = [block for language, block in FENCE.findall(section) if language in languages]
    return [re.sub(r"^pip install .*\n", "", block, flags=re.MULTILINE) for block in found]


def test_readme_works_from_wheels_in_an_empty_environment(tmp_path: Path) -> None:
    """Attach, serve and report; the native extension's wheel installs on any Linux of the last ten
    years.
    """
    installed = Installed(tmp_path)

    names = [file.name for file in installed.wheels.iterdir()]
    natives = [name for name in names if re.match(r"otel_reliability_native-.*\.whl", name)]
    assert sum(name.endswith(".tar.gz") for name in names) == 2
    assert natives
    assert not [name for name in natives if "linux" in name and "manylinux_2_17_" not in name]
    assert installed.shell((
        "python -c 'import otel_reliability_native "
        "as n; print(n.__file__)'"
    )).startswith(
        str(tmp_path)
    )
    _attach(installed)
    _serve(installed)
    _report(installed)


def _attach(installed: Installed) -> None:
    """Run the line of code and the environment variable; each prints the agent's numbers."""
    snippet, _ = blocks("1. In the agent's process", ["python"])
    (installed.work / "agent.py").write_text(AGENT)
    (installed.work / "own.py").write_text(PROVIDERS + snippet + AGENT)
    [line] = (block for block in blocks("1. In the agent's process", ["sh"]) if "agent.py" in block)

    for script in ("python own.py", line):
        assert '"agent.reliability.score"' in installed.shell(script)


def _serve(installed: Installed) -> None:
    """Start the service, send it the demo's spans, and read what it shows; only the ports are
    others.
    """
    serve, demo = blocks("2. As a service", ["sh"])
    places = {name: f"{HOST}:{free_port()}" for name in ("GRPC", "HTTP", "UI", "METRICS")}
    env = {**installed.env, **{f"OTEL_RELIABILITY_SERVICE_{name}": place for name, place in places.items()}}
    service = subprocess.Popen(["bash", "-c", f"exec {serve}"], cwd=installed.work, env=env, stderr=subprocess.DEVNULL)
    try:
        until(lambda: answers(f"http://{places['UI']}/readyz"), "the service is ready")
        sender = subprocess.Popen(
            ["bash", "-c", f"exec {demo.replace('127.0.0.1:4318', places['HTTP'])}"],
            cwd=installed.work,
            env=installed.env,
            stdout=subprocess.DEVNULL,
        )
        try:
            until(lambda: json.loads(ask(f"http://{places['UI']}/api/v1/agents").body)["total"] > 5, "agents are known")
        finally:
            sender.send_signal(signal.SIGINT)
            sender.wait(30)
        assert b"agent_reliability_window_runs" in ask(f"http://{places['METRICS']}/metrics").body
        assert answers(f"http://{places['UI']}/")
    finally:
        service.terminate()
        assert service.wait(60) == 0


def _report(installed: Installed) -> None:
    """Report on the file that the demo leaves, and hold it to the gate's target."""
    installed.shell("otel-reliability demo --once")
    commands = [
        block for block in blocks("3. On recorded spans", sorted(SHELLS)) if "demo-spans.jsonl" in block
    ]

    shown = "".join(map(installed.shell, commands))

    assert len(commands) == 2
    assert "researcher" in shown
    assert "1 held" in shown
    assert "<title>" in (installed.work / "report.html").read_text(encoding="utf-8")
