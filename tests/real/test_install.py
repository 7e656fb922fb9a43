"""The installer: made once, made whole, made again when its recipe changes; its pins agree with one another."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.real import components, install

HERE = Path(__file__).resolve().parent


class Workshop:
    """A cache of its own and one component, `thing`, whose recipe is a file."""

    def __init__(self, folder: Path) -> None:
        self.recipe = folder / "recipe"
        self.recipe.write_text("one")
        self.versions = folder / "versions.toml"
        self.versions.write_text(f'[thing]\nversion = "1"\nprograms = ["bin/thing"]\nrecipe = ["{self.recipe}"]\n')
        self.cache = folder / "cache"
        self.built: list[str] = []

    def build(self, shell: install.Shell, work: Path, out: Path) -> None:
        """Build by copying the recipe into the program."""
        self.built.append(self.recipe.read_text())
        (work / "left over").touch()
        (out / "bin").mkdir()
        (out / "bin" / "thing").write_text(self.recipe.read_text())

    def fail(self, shell: install.Shell, work: Path, out: Path) -> None:
        """Build, then fail."""
        self.build(shell, work, out)
        shell.run("doing the impossible", "sh", "-c", "echo no such luck; exit 3", cwd=work)

    def kept(self) -> Sequence[str]:
        """Return the names of the folders in the cache."""
        return sorted(path.name for path in self.cache.iterdir() if path.is_dir())


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    workshop = Workshop(tmp_path)
    monkeypatch.setenv("OTEL_RELIABILITY_CACHE", str(workshop.cache))
    monkeypatch.setattr(install, "VERSIONS", workshop.versions)
    monkeypatch.setattr(install, "BUILDERS", {"thing": workshop.build})
    return workshop


def test_builds_once(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main([]) == 0
    assert install.main(["thing"]) == 0

    assert workshop.built == ["one"]
    assert workshop.kept() == ["thing-1"]
    assert capsys.readouterr().out.count(f"thing 1: ready in {workshop.cache / 'thing-1'}") == 2


def test_builds_again_when_the_recipe_changes(workshop: Workshop) -> None:
    install.main([])
    workshop.recipe.write_text("two")
    assert not install.components()["thing"].ready()

    install.main([])

    assert (workshop.cache / "thing-1" / "bin" / "thing").read_text() == "two"
    assert workshop.kept() == ["thing-1"]


def test_a_failed_build_leaves_what_was_there(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    install.main([])
    workshop.recipe.write_text("two")
    monkeypatch.setattr(install, "BUILDERS", {"thing": workshop.fail})
    assert install.main([]) == 1
    assert workshop.kept() == ["thing-1"]
    assert (workshop.cache / "thing-1" / "bin" / "thing").read_text() == "one"


def test_any_error_of_a_build_is_a_reason_to_skip(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A build that raises ends without a traceback; tests skip with its reason until a later build succeeds."""

    def fail(shell: install.Shell, work: Path, out: Path) -> None:
        next(out.glob("nothing"))

    monkeypatch.setattr(install, "BUILDERS", {"thing": fail})
    monkeypatch.setattr(components, "components", install.components)

    assert install.main(["--optional"]) == 0
    assert "thing 1: not installed: StopIteration" in capsys.readouterr().out
    with pytest.raises(pytest.skip.Exception, match="thing 1 is not installed: StopIteration"):
        components.folder_of("thing")

    monkeypatch.setattr(install, "BUILDERS", {"thing": workshop.build})
    assert install.main([]) == 0
    assert components.folder_of("thing") == workshop.cache / "thing-1"


@pytest.mark.parametrize("libraries", [(), ("x86_64-linux-gnu", "x86_64-linux-gnu/pulseaudio")])
def test_chromium_is_unpacked_whether_the_machine_has_its_libraries_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: Sequence[str]
) -> None:
    """On a machine with Debian's chromium, the packages hold the browser alone, and no folder of libraries."""
    downloaded: list[str] = []

    def unpack(shell: install.Shell, work: Path, names: Sequence[str]) -> Path:
        downloaded.extend(names)
        for folder in ("chromium", *libraries):
            (work / "tree/usr/lib" / folder).mkdir(parents=True)
        program = work / "tree/usr/lib/chromium/chromium"
        program.write_text('#!/bin/sh\necho "libraries: $LD_LIBRARY_PATH"\n')
        program.chmod(0o755)
        return work / "tree"

    def plan(shell: install.Shell, *command: str) -> str:
        return "Reinstallation of chromium is not possible\nInst libnss3 (2:3.87)\n"

    monkeypatch.setattr(install, "unpack", unpack)
    monkeypatch.setattr(install.Shell, "output_of", plan)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    out.mkdir()

    install.unpack_chromium(install.Shell(install.components()["chromium"], tmp_path / "log"), work, out)
    shown = subprocess.run([out / "bin/chromium"], capture_output=True, text=True, check=True).stdout

    assert downloaded == ["chromium", "chromium-common", "chromium-driver", "libnss3"]
    assert shown.count("-linux-gnu") == len(libraries)


def test_of_two_at_once_one_builds(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    first_is_in, let_go = threading.Event(), threading.Event()

    def slow(shell: install.Shell, work: Path, out: Path) -> None:
        first_is_in.set()
        assert let_go.wait(30)
        workshop.build(shell, work, out)

    monkeypatch.setattr(install, "BUILDERS", {"thing": slow})
    both = [threading.Thread(target=install.main, args=([],)) for _ in range(2)]
    both[0].start()
    assert first_is_in.wait(30)
    both[1].start()
    let_go.set()
    for thread in both:
        thread.join(30)

    assert workshop.built == ["one"]


def test_every_part_of_the_collector_is_pinned() -> None:
    """go.mod pins exactly the versions of builder.yaml, and go.sum has the checksum of each, so a build needs no look-up."""
    parts = re.findall(r"gomod: (.+)", _text("collector/builder.yaml"))
    pinned = _text("collector/go.mod")
    sums = _text("collector/go.sum")

    assert len(parts) > 20
    assert [part for part in sorted(parts) if f"\t{part}\n" not in pinned] == []
    assert [part for part in sorted(parts) if f"{part} h1:" not in sums] == []


def test_the_collector_is_of_one_release() -> None:
    version = install.components()["collector"].version
    releases = re.findall(
        r"gomod: \S*(?:exporter|receiver|processor|connector)\S* v(\S+)", _text("collector/builder.yaml")
    )

    assert len(releases) > 15
    assert set(releases) == {version}


def test_the_broker_is_of_one_release() -> None:
    pom = ET.fromstring(_text("kafka/pom.xml"))
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    versions = {
        part.findtext("m:version", None, space)
        for part in pom.iterfind("m:dependencies/m:dependency", space)
        if part.findtext("m:groupId", None, space) == "org.apache.kafka"
    }

    assert versions == {install.components()["kafka"].version}


def _text(path: str) -> str:
    return (HERE / path).read_text()
