from __future__ import annotations

import os
import subprocess
import sys

import pytest

from otel_reliability.cli import NO_FORKS
from otel_reliability.cli.app import COMMANDS
from tests.cli.command_line import call


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    """What it is for, what to type first, and every command with what it does."""
    done = call(capsys, "--help")

    assert done.code == 0
    assert "otel-reliability demo" in done.out
    assert all(name in done.out for name in COMMANDS)
    assert "prompt" in done.out


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "serve"])
def test_every_command_has_help_of_its_own(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Its options are explained."""
    done = call(capsys, name, "--help")

    assert done.code == 0
    assert f"otel-reliability {name}" in done.out


def test_a_misspelt_command_is_told_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Bad usage exits 2."""
    done = call(capsys, "repot")

    assert done.code == 2
    assert "'repot' is not a command; did you mean report?" in done.err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """As installed."""
    assert "0." in call(capsys, "--version").out


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        ("click", "report", "cli"),
        ("rich", "report", "cli"),
        ("aiohttp", "serve", "service"),
        ("aiohttp", "demo", "service"),
    ],
)
def test_without_its_packages_the_command_line_says_what_to_install(missing: str, command: str, extra: str) -> None:
    """The in-process door is installed without them, and the command line without those of the service."""
    code = f"import sys; sys.modules[{missing!r}] = None; from otel_reliability.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert f"pip install 'otel-reliability[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("told", "then"), [(None, "0"), ("1", "1")])
def test_grpc_leaves_forks_alone_unless_somebody_says_otherwise(told: str | None, then: str) -> None:
    """Before it can have been loaded."""
    code = (
        "import atexit, os, sys; from otel_reliability.cli import NO_FORKS, main; "
        "assert 'grpc' not in sys.modules; atexit.register(lambda: print(os.environ.get(NO_FORKS))); main()"
    )
    env = {name: value for name, value in os.environ.items() if name != NO_FORKS} | ({NO_FORKS: told} if told else {})
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True, env=env
    )

    assert done.stdout.split()[-1] == then


def test_help_loads_no_engine() -> None:
    """It answers at once."""
    code = "from otel_reliability.cli.app import app; app(['-h'], standalone_mode=False); import sys; print(set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "'otel_reliability.engine'" not in done.stdout
    assert "'numpy'" not in done.stdout
