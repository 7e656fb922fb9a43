"""Does what a Dockerfile says in a folder that stands for the image, where there is no engine to
build one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
DOCKERFILE = PROJECT / "docker" / "Dockerfile"

_OURS = re.compile(r"(?<![\w.])/(opt|src|dist|var/lib)(?=[/\s:\"]|$)")
"""Folders of the image that are its own; all others are those of the machine."""
_TO_PACKAGES = re.compile(r"PIP_|UV_|SSL_|\w+_proxy$", re.IGNORECASE)
"""How packages are reached from this machine."""


class Step(NamedTuple):
    """One instruction."""

    name: str
    text: str


def steps(dockerfile: Path = DOCKERFILE) -> Iterator[Step]:
    """The instructions of a Dockerfile, each in one line."""
    text = "\n".join(
        line for line in dockerfile.read_text().splitlines() if not line.startswith("#")
    )
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield Step(name, rest.strip())


def copied(step: Step) -> tuple[dict[str, str], list[str], str]:
    """A COPY's flags, its sources, and where they go."""
    words = step.text.split()
    flags = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    *sources, target = (word for word in words if not word.startswith("--"))
    return flags, sources, target


class Image:
    """What the steps came to. `root` is where its own folders are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment: dict[str, str] = {}
        self.user = 0
        self.entrypoint: list[str] = []
        self.command: list[str] = []
        self.health: list[str] = []
        self._folder = Path("/")
        self._network: dict[str, str] = {}
        for step in steps():
            self._take(step)

    def placed(self, text: str) -> str:
        """The text with the image's own folders where they are here."""
        return _OURS.sub(rf"{self.root}/\1", text)

    def run(self, command: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        """Start a program as the image's user would, with its environment and nothing of this
        process's.
        """
        user = self.user if os.getuid() == 0 else None
        words = [self.placed(word) for word in command]
        env = {**self.environment, **environment}
        words[0] = shutil.which(words[0], path=env["PATH"]) or words[0]
        return subprocess.Popen(
            words,
            env=env,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )

    def _take(self, step: Step) -> None:
        match step.name:
            case "FROM":
                self.environment = {
                    "PATH": f"{self._python()}:{os.environ['PATH']}",
                    "HOME": os.environ["HOME"],
                }
                self._network = {
                    name: value for name, value in os.environ.items() if _TO_PACKAGES.match(name)
                }
            case "ENV":
                words = (word.partition("=") for word in shlex.split(step.text))
                self.environment |= {name: self.placed(value) for name, _, value in words}
            case "WORKDIR":
                self._folder = Path(self.placed(step.text))
                self._folder.mkdir(parents=True, exist_ok=True)
            case "RUN":
                command = ["bash", "-euc", self.placed(step.text)]
                env = {**self._network, **self.environment}
                done = subprocess.run(
                    command, cwd=self._folder, env=env, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{step.text}\n{done.stderr}"
            case "COPY":
                self._copy(step)
            case "USER":
                self.user = int(step.text.partition(":")[0])
            case "ENTRYPOINT":
                self.entrypoint = json.loads(step.text)
            case "CMD":
                self.command = json.loads(step.text)
            case "HEALTHCHECK":
                self.health = json.loads(step.text.partition("CMD ")[2])
            case _:
                assert step.name in {"ARG", "LABEL", "EXPOSE", "VOLUME"}, step.name

    def _copy(self, step: Step) -> None:
        flags, sources, target = copied(step)
        base = self.root if "from" in flags else PROJECT
        goal = Path(self.placed(target)) if target.startswith("/") else self._folder / target
        for source in sources:
            found = base / source.removeprefix("/")
            if found == goal:
                continue
            if found.is_dir():
                shutil.copytree(
                    found, goal, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                goal.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, goal)
            if "chown" in flags and os.getuid() == 0:
                user, group = (int(one) for one in flags["chown"].split(":"))
                for each in found.iterdir():
                    shutil.chown(goal / each.name, user, group)

    def _python(self) -> Path:
        """A folder in which `python` is a Python of this machine that any user may run."""
        candidates = [
            Path(sys.executable).resolve(),
            *Path("/usr/local/bin").glob("python3*"),
            Path("/usr/bin/python3"),
        ]
        open_to_all = (
            python
            for python in candidates
            if all(above.stat().st_mode & 0o001 for above in python.resolve().parents)
        )
        folder = self.root / "python"
        if not folder.exists():
            folder.mkdir()
            (folder / "python").symlink_to(next(open_to_all, candidates[0]))
        return folder
