"""What is installed is what was promised: the locks, the entry points, and a light in-process door."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.sdk

PROJECT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-lowest.lock")


def pinned(lock: str, package: str) -> str:
    """The version of a package in a lock."""
    found = re.search(rf"^{re.escape(package)}==([\w.]+)", (PROJECT / lock).read_text(encoding="utf-8"), re.MULTILINE)
    assert found, package
    return found[1]


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_hashes_and_no_addresses(lock: str) -> None:
    """A lock installs from wherever packages come, and only what it was made with."""
    text = (PROJECT / lock).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[A-Za-z])", text)

    assert "://" not in text
    assert len(entries) > 20
    assert all("--hash=sha256:" in entry for entry in entries)


def test_both_ends_of_the_sdk_are_tested() -> None:
    """One lock holds the oldest SDK we promise to work with, the other a newer one; these tests run with one of them."""
    oldest, newest = pinned(LOCKS[1], "opentelemetry-sdk"), pinned(LOCKS[0], "opentelemetry-sdk")

    assert oldest.startswith("1.36.")
    assert newest.startswith("1.")
    assert newest != oldest
    assert version("opentelemetry-sdk") in {oldest, newest}


@pytest.mark.parametrize(
    ("group", "name"),
    [("console_scripts", "otel-reliability"), ("opentelemetry_traces_exporter", "reliability")],
)
def test_entry_points_lead_somewhere(group: str, name: str) -> None:
    """What the installed metadata names can be imported and called."""
    (point,) = entry_points(group=group, name=name)

    assert callable(point.load())


def test_the_package_is_typed() -> None:
    """Users' type checkers read our annotations."""
    assert (PROJECT / "otel_reliability" / "py.typed").exists()


def test_a_wheel_brings_everything_that_is_not_python(tmp_path: Path) -> None:
    """Templates, styles, scripts and the licences of others: what is in the folder is in the wheel."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT, capture_output=True, check=True)
    [wheel] = tmp_path.glob("*.whl")
    packed = set(ZipFile(wheel).namelist())
    files = (
        file for file in (PROJECT / "otel_reliability").rglob("*") if file.is_file() and "__pycache__" not in file.parts
    )

    assert {file.relative_to(PROJECT).as_posix() for file in files if file.suffix != ".py"} <= packed
    assert any(name.endswith("ui/templates/agent.html") for name in packed)
    assert any(name.endswith("vendor/uplot/LICENSE") for name in packed)
