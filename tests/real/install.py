"""Fetch and build the real programs the tests run against, once, into a cache outside the checkout.

    python tests/real/install.py [--optional] [collector|prometheus|chromium|kafka|helm|jaeger ...]

Nothing is installed on the machine. The Collector, Helm and Jaeger are compiled from pinned Go
modules, Kafka's jars come through Maven, MLflow and Phoenix are Python environments of their own,
and Debian's packages are unpacked next to them, so no service starts by itself. Each program is kept in `~/.cache/otel-reliability/<name>-<version>`
(`OTEL_RELIABILITY_CACHE` moves the cache) and is built again only when it is absent or its recipe
changed. It is built in a folder of its own and renamed when complete: an interrupted run leaves
nothing half done, and of two concurrent runs the second waits.

A program that cannot be installed is reported with the reason. The reason is also kept in the cache
(`<name>.unavailable`), and the tests that need the program are skipped with it.

Only the standard library is used, so that this runs before any environment exists.
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
PROGRESS_INTERVAL_S = 20


class Unavailable(Exception):
    """A program cannot be installed on this machine: the reason, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Component:
    """One pinned program: its entry in `versions.toml`."""

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
        """Return a hash of everything that decides the result, so that an outdated build is
        recognized.
        """
        digest = hashlib.sha256(repr(self).encode())
        for path in self.recipe:
            digest.update((HERE / path).read_bytes())
        return digest.hexdigest()

    def ready(self) -> bool:
        stamp = self.folder / STAMP
        whole = all((self.folder / program).exists() for program in self.programs)
        return whole and stamp.is_file() and stamp.read_text() == self.digest()

    @property
    def reason_file(self) -> Path:
        return cache() / f"{self.name}.unavailable"

    def why_unavailable(self) -> str:
        """Return the reason why the last installation failed, or what to run where
        none was tried.
        """
        with contextlib.suppress(OSError):
            return self.reason_file.read_text().partition("\n")[0]
        return "run `make components`"


def cache() -> Path:
    """Return the folder of all programs: outside the checkout, so that a fresh clone finds it."""
    return Path(
        os.environ.get("OTEL_RELIABILITY_CACHE") or Path.home() / ".cache" / "otel-reliability"
    )


def components() -> Mapping[str, Component]:
    """Read the pins.

    >>> sorted(components())
    ['chromium', 'collector', 'helm', 'jaeger', 'kafka', 'mlflow', 'phoenix', 'prometheus']
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
    """Runs the commands of one build: prints progress, keeps their output, shows the end of it when
    one fails.
    """

    component: Component
    log: Path

    def report(self, text: str) -> None:
        print(f"{self.component.name} {self.component.version}: {text}", flush=True)

    def run(
        self, doing: str, *command: str, cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        """Run one command to its end and report progress every `PROGRESS_INTERVAL_S`."""
        need(command[0])
        self.report(doing)
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
                    code = process.wait(timeout=PROGRESS_INTERVAL_S)
                    break
                self.report(f"{doing}, {time.monotonic() - started:.0f} s so far")
        if code != 0:
            end = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise Unavailable(
                f"{doing} failed with exit code {code}; the end of {self.log}:\n{end}"
            )

    def output_of(self, *command: str) -> str:
        """Run one quick command and return its output."""
        need(command[0])
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0:
            raise Unavailable(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")
        return done.stdout


def need(program: str) -> None:
    """Raise `Unavailable` where a program that the build calls is not on the path."""
    if shutil.which(program) is None:
        raise Unavailable(
            f"needs `{program}`, which is not on this machine; install it and run this again"
        )


def build_collector(shell: Shell, work: Path, out: Path) -> None:
    """Write the Collector's sources with its builder, then compile them with the pinned modules.

    The builder's own compile step is left out: it runs `go mod tidy`, which asks for test
    dependencies that the module proxy does not have.
    """
    recipe = HERE / "collector"
    builder = f"go.opentelemetry.io/collector/cmd/builder@v{shell.component.version}"
    manifest = str(recipe / "builder.yaml")
    options = ("--config", manifest, "--skip-compilation", "--skip-get-modules")
    shell.run("writing the sources", "go", "run", builder, *options, cwd=work, env=go_flags())
    sources = work / "build"
    for pinned in ("go.mod", "go.sum"):
        shutil.copy(recipe / pinned, sources)
    program = str(out / "bin" / "otelcol")
    compile_it = ("go", "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
    shell.run("compiling, some minutes the first time", *compile_it, cwd=sources, env=go_flags())


def go_flags() -> dict[str, str]:
    """Return the flags of the compiler: one core, because others work on this machine meanwhile."""
    return {"GOFLAGS": os.environ.get("GOFLAGS", "-p=1")}


def build_helm(shell: Shell, work: Path, out: Path) -> None:
    module = f"helm.sh/helm/v3/cmd/helm@v{shell.component.version}"
    compile_it = ("go", "install", "-trimpath", "-ldflags=-s -w", module)
    env = {**go_flags(), "GOBIN": str(out / "bin")}
    shell.run("compiling, some minutes the first time", *compile_it, cwd=work, env=env)


def build_jaeger(shell: Shell, work: Path, out: Path) -> None:
    """Compile Jaeger in one program. Its module has replacements, so `go install` refuses it."""
    for pinned in ("go.mod", "go.sum"):
        shutil.copy(HERE / "stores" / "jaeger" / pinned, work)
    program = str(out / "bin" / "jaeger")
    compile_it = ("go", "build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", program)
    package = "github.com/jaegertracing/jaeger/cmd/all-in-one"
    doing = "compiling, some minutes the first time"
    shell.run(doing, *compile_it, package, cwd=work, env=go_flags())


def build_environment(shell: Shell, work: Path, out: Path) -> None:
    """Make a Python environment of a package, with the versions that are pinned beside it."""
    component = shell.component
    environment = out / "environment"
    shell.run("making an environment", sys.executable, "-m", "venv", str(environment), cwd=work)
    (package,) = component.packages
    pinned = HERE / "stores" / f"{component.name}.lock"
    install_it = ("-m", "pip", "install", "--quiet", "--constraint", str(pinned))
    wanted = f"{package}=={component.version}"
    python = str(environment / "bin" / "python")
    shell.run(f"installing {package} and what it needs", python, *install_it, wanted, cwd=work)


def build_kafka(shell: Shell, work: Path, out: Path) -> None:
    need("java")
    shutil.copy(HERE / "kafka" / "pom.xml", work)
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={out / 'lib'}")
    shell.run("collecting the jars", "mvn", "--batch-mode", *goal, cwd=work)


def unpack_prometheus(shell: Shell, work: Path, out: Path) -> None:
    """Unpack the two programs of Debian's package; its web pages and service files
    are not needed.
    """
    tree = unpack(shell, work, shell.component.packages)
    shutil.copytree(tree / "usr" / "bin", out / "bin")


def unpack_chromium(shell: Shell, work: Path, out: Path) -> None:
    """Unpack the browser, its driver, and those of their libraries that this machine lacks.

    Where Debian's own chromium is installed the machine lacks none, so the tree has no folder of
    libraries.
    """
    plan = (
        "apt-get",
        "install",
        "--simulate",
        "--reinstall",
        "--no-install-recommends",
        *shell.component.packages,
    )
    names = {
        line.split()[1] for line in shell.output_of(*plan).splitlines() if line.startswith("Inst ")
    }
    unpack(shell, work, sorted({*names, *shell.component.packages})).rename(out / "tree")
    (out / "bin").mkdir()
    for name, program in (
        ("chromium", "lib/chromium/chromium"),
        ("chromedriver", "bin/chromedriver"),
    ):
        launcher = out / "bin" / name
        launcher.write_text(LAUNCHER.format(program=program))
        launcher.chmod(0o755)


LAUNCHER = """#!/bin/sh
tree=$(dirname "$(dirname "$(readlink -f "$0")")")/tree/usr
for folder in "$tree"/lib/*-linux-gnu "$tree"/lib/*-linux-gnu/pulseaudio; do
    [ -d "$folder" ] && LD_LIBRARY_PATH="$folder${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
done
export LD_LIBRARY_PATH
exec "$tree/{program}" "$@"
"""


def unpack(shell: Shell, work: Path, names: Sequence[str]) -> Path:
    """Download Debian packages and unpack them into a folder, running none of their scripts."""
    refresh(shell, work)
    downloads = work / "packages"
    tree = work / "tree"
    downloads.mkdir()
    tree.mkdir()
    shell.run(
        f"downloading Debian's {', '.join(names)}", "apt-get", "download", *names, cwd=downloads
    )
    shell.report("unpacking")
    for package in sorted(downloads.glob("*.deb")):
        shell.output_of("dpkg-deb", "--extract", str(package), str(tree))
    return tree


def refresh(shell: Shell, work: Path) -> None:
    """Update Debian's package lists where they offer no version that fits the pin."""
    if not fits(shell):
        shell.run("updating the package lists", "apt-get", "update", cwd=work)
    if not fits(shell):
        wanted = f"{shell.component.version}{' or newer' if shell.component.newer else ''}"
        raise Unavailable(
            f"Debian offers {candidate(shell) or 'no version'}, wanted {wanted}; change "
            f"{VERSIONS.name}"
        )


def fits(shell: Shell) -> bool:
    """Return whether Debian's lists offer the pinned version."""
    found = candidate(shell)
    wanted = shell.component.version
    if not shell.component.newer:
        return found.startswith(wanted)
    compare = ["dpkg", "--compare-versions", found or "0", "ge", wanted]
    return subprocess.run(compare, check=False).returncode == 0


def candidate(shell: Shell) -> str:
    """Return the version that Debian's lists offer, or '' where they offer none."""
    policy = shell.output_of("apt-cache", "policy", shell.component.packages[0])
    versions = [
        line.split()[1] for line in policy.splitlines() if line.strip().startswith("Candidate:")
    ]
    return "" if versions in ([], ["(none)"]) else versions[0]


BUILDERS: Mapping[str, Callable[[Shell, Path, Path], None]] = {
    "collector": build_collector,
    "prometheus": unpack_prometheus,
    "chromium": unpack_chromium,
    "kafka": build_kafka,
    "helm": build_helm,
    "jaeger": build_jaeger,
    "mlflow": build_environment,
    "phoenix": build_environment,
}


@contextlib.contextmanager
def locked(name: str) -> Generator[None]:
    """Lock a part of the cache against concurrent builds; the lock ends with the process."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(component: Component) -> Path:
    """Return the folder of a component, building it first where it is absent or outdated.

    Raises `Unavailable` for every failure and keeps the reason for the tests that need the
    component.
    """
    with locked(component.name):
        if not component.ready():
            try:
                make(component)
            except Exception as error:
                reason = (
                    str(error)
                    if isinstance(error, Unavailable)
                    else f"{type(error).__name__}: {error}"
                )
                component.reason_file.write_text(reason)
                raise Unavailable(reason) from error
        component.reason_file.unlink(missing_ok=True)
    return component.folder


def make(component: Component) -> None:
    """Build a component in a temporary folder and rename it into the cache in one step."""
    shell = Shell(component, log=cache() / f"{component.name}.log")
    shell.log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".making-{component.name}-", dir=cache()) as made:
        work = Path(made, "work")
        out = Path(made, "out")
        work.mkdir()
        out.mkdir()
        BUILDERS[component.name](shell, work, out)
        (out / STAMP).write_text(component.digest())
        if component.folder.exists():
            component.folder.rename(Path(made, "outdated"))
        out.rename(component.folder)


def main(arguments: Sequence[str] | None = None) -> int:
    known = components()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "component", nargs="*", metavar="component", help=f"one of {', '.join(known)}; default: all"
    )
    parser.add_argument(
        "--optional", action="store_true", help="exit with 0 where a component cannot be installed"
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.component) - set(known))
    if unknown:
        parser.error(
            f"unknown component {', '.join(unknown)}; name any of {', '.join(known)}, or "
            "none for all"
        )
    missing = [name for name in options.component or known if not reported(known[name])]
    return 1 if missing and not options.optional else 0


def reported(component: Component) -> bool:
    """Install one component, print the result, and return whether it is there."""
    started = time.monotonic()
    try:
        folder = install(component)
    except Unavailable as reason:
        print(f"{component.name} {component.version}: not installed: {reason}", flush=True)
        return False
    print(
        (
            f"{component.name} {component.version}: ready in {folder} "
            f"({time.monotonic() - started:.1f} s)"
        ),
        flush=True,
    )
    return True


if __name__ == "__main__":
    sys.exit(main())
