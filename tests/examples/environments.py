"""An environment for each example that needs one, made with uv from the hashes beside it, once, in
a cache outside the checkout.

Frameworks ask for versions that exclude one another, so no two examples share one. The project
itself is not installed there: it is on the path, as it stands.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.real.install import cache, locked

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "examples"
PATIENCE = 600
"""Seconds that an installation may take; with an empty cache it takes less than ten."""


class NotInstallable(Exception):
    """An environment that cannot be had here, with what uv said of it."""


def python_for(example: str) -> Path:
    """The Python that runs an example, in an environment that is made first where it is absent."""
    requirements = EXAMPLES / example / "requirements.txt"
    if not requirements.exists():
        return Path(sys.executable)
    folder = cache() / f"examples-{example}-{_digest(requirements)}"
    with locked(folder.name):
        if not folder.exists():
            _make(folder, requirements)
    return folder / "bin" / "python"


def _digest(requirements: Path) -> str:
    """Change with what decides the result."""
    return hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()[:12]


def _make(folder: Path, requirements: Path) -> None:
    """Make it beside its place and put it there in one step: a run that was cut off leaves nothing
    half done.
    """
    with tempfile.TemporaryDirectory(prefix=".making-", dir=cache()) as made:
        environment = Path(made, "environment")
        _uv("venv", "--relocatable", "--python", sys.executable, str(environment))
        _uv(
            "pip",
            "sync",
            "--require-hashes",
            "--only-binary=:all:",
            str(requirements),
            environment=environment,
        )
        environment.rename(folder)


def _uv(*arguments: str, environment: Path | None = None) -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        raise NotInstallable("uv is not installed beside the tests")
    chosen = {} if environment is None else {"VIRTUAL_ENV": str(environment)}
    command = ["nice", "-n", "10", uv, "--quiet", *arguments]
    try:
        done = subprocess.run(
            command,
            env=os.environ | chosen,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise NotInstallable(f"uv {arguments[0]} took more than {PATIENCE} s") from None
    if done.returncode:
        raise NotInstallable(f"uv {arguments[0]} failed: {done.stderr.strip()[-500:]}")
