from __future__ import annotations

import subprocess
import sys

import pytest

from otel_reliability.cli.app import COMMANDS
from tests.cli.command_line import call


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "--help")

    assert done.code == 0
    assert "otel-reliability demo" in done.out
    assert all(name in done.out for name in COMMANDS)
    assert "prompt" in done.out


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "serve"])
def test_every_command_has_help_of_its_own(capsys: pytest.CaptureFixture[str], name: str) -> None:
    done = call(capsys, name, "--help")

    assert done.code == 0
    assert f"otel-reliability {name}" in done.out


def test_a_misspelt_command_is_told_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "repot")

    assert done.code == 2
    assert "'repot' is not a command; did you mean report?" in done.err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert "0." in call(capsys, "--version").out


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        ("click", "report", "cli"),
        ("rich", "report", "cli"),
        ("aiohttp", "serve", "service"),
        ("aiohttp", "demo", "service"),
        ("quixstreams", "kafka aggregate", "kafka"),
    ],
)
def test_without_its_packages_the_command_line_says_what_to_install(
    missing: str, command: str, extra: str
) -> None:
    """The in-process door is installed without them, and the command line without those of the
    service.
    """
    code = (
        f"import sys; sys.modules[{missing!r}] = None; from otel_reliability.cli import main; "
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert f"pip install 'otel-reliability[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_on_windows_serve_says_where_it_runs() -> None:
    code = "import sys; sys.modules['fcntl'] = None; from otel_reliability.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr == (
        "otel-reliability: this needs Linux or macOS; "
        "on Windows run the service's container image.\n"
    )


def test_help_loads_no_engine() -> None:
    code = (
        "from otel_reliability.cli.app import app; app(['-h'], standalone_mode=False); "
        "import sys; print(set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "'otel_reliability.engine'" not in done.stdout
    assert "'numpy'" not in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by Linux's /proc")
def test_numpy_begins_no_threads_and_programs_that_are_started_do_not_inherit_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)  # of the tests themselves
    code = (
        "import os\n"
        "from otel_reliability.cli.app import app\n"
        "app.get_command(None, 'serve')\n"
        "import numpy\n"
        "print(len(os.listdir('/proc/self/task')), 'OPENBLAS_NUM_THREADS' in os.environ)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["1", "False"]
