"""Fetch and build the real programs the tests run against, once, into a cache outside the checkout.

    python tests/real/install.py [--optional] [collector|prometheus|chromium|kafka ...]

Nothing is installed on the machine. The Collector is compiled from pinned Go modules, Kafka's jars come through Maven, and
Debian's packages are unpacked beside them, so no service starts by itself. Each program stands in
`~/.cache/otel-reliability/<name>-<version>` (`OTEL_RELIABILITY_CACHE` moves the cache) and is made again only when it is
absent or its recipe changed. It is made in a folder of its own and renamed into place when whole: a run that was cut off
leaves nothing half done, and of two runs at once the second waits.

Only the standard library is used, so that it runs before anything else is there.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSIONS = HERE / "versions.toml"
STAMP = "recipe.sha256"
SECONDS_BETWEEN_SIGNS_OF_LIFE = 20


class Unavailable(Exception):
    """A program that cannot be had here, with the reason and what to do about it."""


@dataclass(frozen=True, slots=True)
class Component:
    """One pinned program: what `versions.toml` says of it."""

    name: str
    version: str
    newer: bool
    programs: Sequence[str]
    packages: Sequence[str]
    recipe: Sequence[str]

    @property
    def folder(self) -> Path:
        return cache() / f"{self.name}-{self.version}"

    def digest(self) -> str:
        """Change whenever what decides the result changes, so that an older build is told from a current one."""
        digest = hashlib.sha256(repr(self).encode())
        for path in self.recipe:
            digest.update((HERE / path).read_bytes())
        return digest.hexdigest()

    def ready(self) -> bool:
        stamp = self.folder / STAMP
        whole = all((self.folder / program).exists() for program in self.programs)
        return whole and stamp.is_file() and stamp.read_text() == self.digest()


def cache() -> Path:
    """Where everything is kept: outside the checkout, so that a fresh clone finds it."""
    return Path(os.environ.get("OTEL_RELIABILITY_CACHE") or Path.home() / ".cache" / "otel-reliability")


def components() -> Mapping[str, Component]:
    """Read the pins.

    >>> sorted(components())
    ['chromium', 'collector', 'kafka', 'prometheus']
    """
    table = tomllib.loads(VERSIONS.read_text())
    return {
        name: Component(
            name=name,
            version=pin["version"],
            newer=pin.get("newer", False),
            programs=tuple(pin["programs"]),
            packages=tuple(pin.get("packages", ())),
            recipe=tuple(pin.get("recipe", ())),
        )
        for name, pin in table.items()
    }


@dataclass(slots=True)
class Shell:
    """Runs the commands of one build: says what it does, keeps their output, shows its end when one fails."""

    component: Component
    log: Path

    def tell(self, text: str) -> None:
        print(f"{self.component.name} {self.component.version}: {text}", flush=True)

    def run(self, doing: str, *command: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        """Run one command to its end, with a sign of life while it works."""
        need(command[0])
        self.tell(doing)
        started = time.monotonic()
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                ["nice", "-n", "10", *command],
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=SECONDS_BETWEEN_SIGNS_OF_LIFE)
                    break
                self.tell(f"{doing}, {time.monotonic() - started:.0f} s so far")
        if code != 0:
            end = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise Unavailable(f"{doing} failed with exit code {code}; the end of {self.log}:\n{end}")

    def ask(self, *command: str) -> str:
        """Run one quick command and return what it prints."""
        need(command[0])
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Unavailable(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")
        return done.stdout


def need(program: str) -> None:
    """Refuse early, by name, what would fail later in a build's own words."""
    if shutil.which(program) is None:
        raise Unavailable(f"needs `{program}`, which is not on this machine; install it and run this again")


def build_collector(shell: Shell, work: Path, out: Path) -> None:
    """Write the Collector's sources with its builder, then compile them with the pinned modules.

    The builder's own compile step is left out: it runs `go mod tidy`, which asks for test dependencies that the module
    proxy does not have.
    """
    recipe = HERE / "collector"
    builder = f"go.opentelemetry.io/collector/cmd/builder@v{shell.component.version}"
    flags = {"GOFLAGS": os.environ.get("GOFLAGS", "-p=1")}  # one core: others work on this machine meanwhile
    manifest = str(recipe / "builder.yaml")
    options = ("--config", manifest, "--skip-compilation", "--skip-get-modules")
    shell.run("writing the sources", "go", "run", builder, *options, cwd=work, env=flags)
    sources = work / "build"
    for pinned in ("go.mod", "go.sum"):
        shutil.copy(recipe / pinned, sources)
    program = str(out / "bin" / "otelcol")
    compile_it = ("go", "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
    shell.run("compiling, some minutes the first time", *compile_it, cwd=sources, env=flags)


def build_kafka(shell: Shell, work: Path, out: Path) -> None:
    """Collect the jars of a broker."""
    need("java")
    shutil.copy(HERE / "kafka" / "pom.xml", work)
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={out / 'lib'}")
    shell.run("collecting the jars", "mvn", "--batch-mode", *goal, cwd=work)


def unpack_prometheus(shell: Shell, work: Path, out: Path) -> None:
    """Unpack the two programs of Debian's package; its web pages and service files are not needed."""
    tree = unpack(shell, work, shell.component.packages)
    shutil.copytree(tree / "usr" / "bin", out / "bin")


def unpack_chromium(shell: Shell, work: Path, out: Path) -> None:
    """Unpack the browser, its driver, and every library of theirs that this machine lacks."""
    plan = ("apt-get", "install", "--simulate", "--reinstall", "--no-install-recommends", *shell.component.packages)
    names = [line.split()[1] for line in shell.ask(*plan).splitlines() if line.startswith("Inst ")]
    unpack(shell, work, names).rename(out / "tree")
    libraries = next((out / "tree" / "usr" / "lib").glob("*-linux-gnu"))
    (out / "bin").mkdir()
    for name, program in (("chromium", "lib/chromium/chromium"), ("chromedriver", "bin/chromedriver")):
        launcher = out / "bin" / name
        launcher.write_text(LAUNCHER.format(libraries=libraries.name, program=program))
        launcher.chmod(0o755)


LAUNCHER = """#!/bin/sh
tree=$(dirname "$(dirname "$(readlink -f "$0")")")/tree/usr
LD_LIBRARY_PATH="$tree/lib/{libraries}:$tree/lib/{libraries}/pulseaudio" exec "$tree/{program}" "$@"
"""


def unpack(shell: Shell, work: Path, names: Sequence[str]) -> Path:
    """Download Debian packages and unpack them into a folder, running none of their scripts."""
    refresh(shell, work)
    downloads, tree = work / "packages", work / "tree"
    downloads.mkdir()
    tree.mkdir()
    shell.run(f"downloading Debian's {', '.join(names)}", "apt-get", "download", *names, cwd=downloads)
    shell.tell("unpacking")
    for package in sorted(downloads.glob("*.deb")):
        shell.ask("dpkg-deb", "--extract", str(package), str(tree))
    return tree


def refresh(shell: Shell, work: Path) -> None:
    """Bring Debian's lists up to date where they hold none or another version than is pinned."""
    if not fits(shell):
        shell.run("bringing the package lists up to date", "apt-get", "update", cwd=work)
    if not fits(shell):
        wanted = f"{shell.component.version}{' or newer' if shell.component.newer else ''}"
        raise Unavailable(f"Debian has {candidate(shell) or 'no'} version of it, wanted {wanted}; change {VERSIONS}")


def fits(shell: Shell) -> bool:
    """Whether Debian's lists offer the pinned version."""
    found, wanted = candidate(shell), shell.component.version
    if not shell.component.newer:
        return found.startswith(wanted)
    compare = ["dpkg", "--compare-versions", found or "0", "ge", wanted]
    return subprocess.run(compare, check=False).returncode == 0


def candidate(shell: Shell) -> str:
    """Tell the version that Debian's lists offer, or '' where they offer none."""
    policy = shell.ask("apt-cache", "policy", shell.component.packages[0])
    versions = [line.split()[1] for line in policy.splitlines() if line.strip().startswith("Candidate:")]
    return "" if versions in ([], ["(none)"]) else versions[0]


BUILDERS: Mapping[str, Callable[[Shell, Path, Path], None]] = {
    "collector": build_collector,
    "prometheus": unpack_prometheus,
    "chromium": unpack_chromium,
    "kafka": build_kafka,
}


@contextlib.contextmanager
def only_one(component: Component) -> Generator[None]:
    """Hold the right to make a component; the lock goes with the process, however it ends."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f".{component.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(component: Component) -> Path:
    """Return the folder of a component, making it first where it is absent or outdated."""
    with only_one(component):
        if not component.ready():
            make(component)
    return component.folder


def make(component: Component) -> None:
    """Make a component beside its place and put it there in one step."""
    shell = Shell(component, log=cache() / f"{component.name}.log")
    shell.log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".making-{component.name}-", dir=cache()) as made:
        work, out = Path(made, "work"), Path(made, "out")
        work.mkdir()
        out.mkdir()
        BUILDERS[component.name](shell, work, out)
        (out / STAMP).write_text(component.digest())
        if component.folder.exists():
            component.folder.rename(Path(made, "outdated"))
        out.rename(component.folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Install what is named, or everything, and return the exit code."""
    known = components()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("component", nargs="*", metavar="component", help=f"one of {', '.join(known)}; all unless told")
    parser.add_argument("--optional", action="store_true", help="do not fail over a component that cannot be had here")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.component) - set(known))
    if unknown:
        parser.error(f"component: got {', '.join(unknown)}; known are {', '.join(known)}; name one of these, or none")
    missing = [name for name in options.component or known if not told(known[name])]
    return 1 if missing and not options.optional else 0


def told(component: Component) -> bool:
    """Install one component and say how it went."""
    started = time.monotonic()
    try:
        folder = install(component)
    except Unavailable as reason:
        print(f"{component.name} {component.version}: cannot be had: {reason}", flush=True)
        return False
    print(f"{component.name} {component.version}: ready in {folder} ({time.monotonic() - started:.1f} s)", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
