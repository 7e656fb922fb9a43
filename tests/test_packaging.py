"""What is installed is what was promised: the locks, the entry points, and a
light in-process door.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from zipfile import ZipFile

import pytest

import otel_reliability

pytestmark = pytest.mark.sdk

PROJECT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-lowest.lock")


def pinned(lock: str, package: str) -> str:
    found = re.search(
        rf"^{re.escape(package)}==([\w.]+)",
        (PROJECT / lock).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert found, package
    return found[1]


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_hashes_and_no_addresses(lock: str) -> None:
    text = (PROJECT / lock).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[A-Za-z])", text)

    assert "://" not in text
    assert len(entries) > 20
    assert all("--hash=sha256:" in entry for entry in entries)


def test_both_ends_of_the_sdk_are_tested() -> None:
    """One lock holds the oldest SDK we promise to work with, the other a newer one; these tests run
    with one of them.
    """
    oldest = pinned(LOCKS[1], "opentelemetry-sdk")
    newest = pinned(LOCKS[0], "opentelemetry-sdk")

    assert oldest.startswith("1.36.")
    assert newest.startswith("1.")
    assert newest != oldest
    assert version("opentelemetry-sdk") in {oldest, newest}


@pytest.mark.parametrize(
    "file", ["Makefile", ".github/workflows/pull-request.yml", ".github/workflows/release.yml"]
)
def test_the_same_pythons_are_supported_and_tested(file: str) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = {
        name.rpartition(" ")[2] for name in project["classifiers"] if "Python :: 3." in name
    }
    named = set(re.findall(r"\b3\.\d\d\b", (PROJECT / file).read_text(encoding="utf-8")))

    assert named == supported


@pytest.mark.parametrize(
    ("group", "name"),
    [("console_scripts", "otel-reliability"), ("opentelemetry_traces_exporter", "reliability")],
)
def test_entry_points_lead_somewhere(group: str, name: str) -> None:
    (point,) = entry_points(group=group, name=name)

    assert callable(point.load())


def test_the_package_is_typed() -> None:
    assert (PROJECT / "otel_reliability" / "py.typed").exists()


def test_a_wheel_brings_everything_that_is_not_python(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(tmp_path),
    ]
    subprocess.run(build, cwd=PROJECT, capture_output=True, check=True)
    [wheel] = tmp_path.glob("*.whl")
    packed = set(ZipFile(wheel).namelist())
    files = (
        file
        for file in (PROJECT / "otel_reliability").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )

    assert {
        file.relative_to(PROJECT).as_posix() for file in files if file.suffix != ".py"
    } <= packed
    assert any(name.endswith("ui/templates/agent.html") for name in packed)
    assert any(name.endswith("vendor/uplot/LICENSE") for name in packed)


# --- Public names ---------------------------------------------------------------------------------


def test_the_public_names_are_these_and_sorted() -> None:
    """Every name here is a promise for years; one more is a decision."""
    assert otel_reliability.__all__ == [
        "ConfigurationError",
        "ReliabilityError",
        "ReliabilitySpanExporter",
        "ReliabilitySpanProcessor",
        "Settings",
        "annotate",
        "record",
        "reliability_run",
    ]
    assert sorted(otel_reliability.__all__) == otel_reliability.__all__ == dir(otel_reliability)


@pytest.mark.parametrize("name", otel_reliability.__all__)
def test_a_public_name_is_there_and_explained(name: str) -> None:
    assert getdoc(getattr(otel_reliability, name))


def test_a_name_that_is_none_is_said_to_be_none() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'annotat'"):
        _ = otel_reliability.annotat


@pytest.mark.parametrize("name", otel_reliability.__all__)
def test_no_module_has_the_name_of_something_public(name: str) -> None:
    """Importing that module would put it in the place of what people mean by the name."""
    assert find_spec(f"otel_reliability.{name}") is None


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import otel_reliability", "opentelemetry"),
        ("from otel_reliability import annotate", "opentelemetry.sdk"),
    ],
)
def test_what_is_not_asked_for_is_not_loaded(code: str, heavy: str) -> None:
    loaded = (
        f"{code}; import sys; print([name for name in sys.modules if name.startswith({heavy!r})])"
    )
    told = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
