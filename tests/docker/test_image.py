"""The image: what stands in its Dockerfile, done here without an engine, and its entry point
started as its user.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.image import DOCKERFILE, PROJECT, Image, copied, steps
from tests.real.ports import HOST, free_port
from tests.real.waiting import until
from tests.real.web import answers, ask
from tests.service.running import PROTOBUF, body_of, run_of

DOORS = {"grpc": 4317, "http": 4318, "ui": 8080, "metrics": 9464}
PREFIX = "OTEL_RELIABILITY_SERVICE_"


def entries(lock: Path) -> dict[str, str]:
    """What a lock holds, by package: version, marker and hashes, without comments."""
    text = re.sub(r"^\s*#.*\n", "", lock.read_text(), flags=re.MULTILINE)
    return {entry.partition("==")[0]: entry.strip() for entry in re.split(r"\n(?=[A-Za-z])", text)}


@pytest.mark.skipif(
    sys.platform != "linux", reason="the linter of Dockerfiles is installed on Linux only"
)
def test_the_dockerfile_is_as_hadolint_wants_it() -> None:
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    done = subprocess.run(
        [hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")
    assert "hadolint ignore" not in DOCKERFILE.read_text()


def test_every_stage_rests_on_one_base_pinned_by_digest() -> None:
    bases = {step.text.partition(" AS ")[0] for step in steps() if step.name == "FROM"}

    (base,) = bases
    assert re.fullmatch(r"python:3\.13\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


@pytest.mark.parametrize("name", ["build.lock", "requirements.lock"])
def test_what_is_installed_is_part_of_what_is_tested(name: str) -> None:
    all_of_it = entries(PROJECT / "requirements.lock")
    part = entries(PROJECT / "docker" / name)

    assert part.items() <= all_of_it.items()
    assert f"docker/{name}" in (PROJECT / "Makefile").read_text()


def test_nothing_for_developers_is_installed() -> None:
    assert {"pytest", "ruff", "uv", "hatchling", "quixstreams"}.isdisjoint(
        entries(PROJECT / "docker/requirements.lock")
    )
    assert {"aiohttp", "grpcio", "numpy", "opentelemetry-sdk"} <= entries(
        PROJECT / "docker/requirements.lock"
    ).keys()


def test_only_what_is_copied_is_sent_to_the_engine() -> None:
    ignored, *let_through = (
        line
        for line in (PROJECT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    )
    wanted = {
        source
        for step in steps()
        if step.name == "COPY"
        for source in copied(step)[1]
        if not source.startswith("/")
    }

    assert ignored == "*"
    assert {line[1:] for line in let_through if line.startswith("!")} == wanted
    assert all((PROJECT / source).exists() for source in wanted)


def test_its_doors_are_those_that_are_exposed() -> None:
    (exposed,) = (step.text for step in steps() if step.name == "EXPOSE")
    text = DOCKERFILE.read_text()

    assert {int(port) for port in exposed.split()} == set(DOORS.values())
    assert all(f"{PREFIX}{door.upper()}=0.0.0.0:{port}" in text for door, port in DOORS.items())


@pytest.fixture
def ports() -> dict[str, int]:
    """Free ports for the doors of one container."""
    return {door: free_port() for door in DOORS}


@pytest.fixture
def container(image: Image, ports: dict[str, int]) -> Iterator[subprocess.Popen[str]]:
    """The image's entry point and command, as its user, with nowhere to write but to its state."""
    doors = {f"{PREFIX}{door.upper()}": f"{HOST}:{port}" for door, port in ports.items()}
    nowhere = {"TMPDIR": "/nowhere", "HOME": "/nowhere"}
    with image.run([*image.entrypoint, *image.command], **doors, **nowhere) as process:
        yield process
        process.kill()


def written(image: Image) -> dict[str, int]:
    """When each file of the image was last written, those of its state left out."""
    state = image.root / "var"
    return {
        str(file): file.stat().st_mtime_ns
        for file in image.root.rglob("*")
        if state not in file.parents
    }


def test_what_is_built_here_runs_as_the_image_would(
    image: Image, container: subprocess.Popen[str], ports: dict[str, int]
) -> None:
    """One test, for building takes a while: the service as its user, what it asks for as it comes,
    and the fleet.
    """
    it_serves_and_writes_to_its_state_only(image, container, ports)
    with_open_doors_it_asks_for_tokens(image)
    the_fleet_is_in_it(image)


def it_serves_and_writes_to_its_state_only(
    image: Image, container: subprocess.Popen[str], ports: dict[str, int]
) -> None:
    """It takes spans and tells numbers; its health check says so, and says when it has ended;
    nothing else was written.
    """
    before = written(image)
    pages = {f"{PREFIX}UI": f"{HOST}:{ports['ui']}"}
    until(lambda: answers(f"http://{HOST}:{ports['ui']}/readyz"), "the service to be ready")
    taken = ask(
        f"http://{HOST}:{ports['http']}/v1/traces",
        body=body_of(run_of()),
        headers={"Content-Type": PROTOBUF},
    )
    with image.run(image.health, **pages) as health:
        well = health.wait(120)
    container.send_signal(signal.SIGTERM)
    said, _ = container.communicate(timeout=120)
    with image.run(image.health, **pages) as health:
        ill = health.wait(120)
    state = image.root / "var/lib/otel-reliability"
    owners = {file.stat().st_uid for file in state.rglob("*")}

    assert (taken.status, well, ill) == (200, 0, 1)
    assert (container.returncode, "Stopped." in said) == (0, True)
    assert owners == {image.user if os.getuid() == 0 else os.getuid()}
    assert image.user >= 10_000
    assert written(image) == before


def with_open_doors_it_asks_for_tokens(image: Image) -> None:
    """As it comes, all of its network could send and read; it says what to do, and
    does not start.
    """
    with image.run([*image.entrypoint, *image.command]) as process:
        said, _ = process.communicate(timeout=120)

    assert process.returncode == 2
    assert "service.allow_public" in said or "token" in said


def the_fleet_is_in_it(image: Image) -> None:
    """The compose files start the demo's fleet from the same image."""
    with image.run([*image.entrypoint, "demo", "--help"]) as process:
        said, _ = process.communicate(timeout=120)

    assert process.returncode == 0
    assert "--endpoint" in said
