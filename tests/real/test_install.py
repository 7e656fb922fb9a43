"""The installer: made once, made whole, made again when its recipe changes; its pins agree with one
another.
"""

from __future__ import annotations

import re
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
        self.versions.write_text(
            f'[thing]\nversion = "1"\nprograms = ["bin/thing"]\nrecipe = ["{self.recipe}"]\n'
        )
        self.cache = folder / "cache"
        self.built: list[str] = []

    def build(self, shell: install.Shell, work: Path, out: Path) -> None:
        self.built.append(self.recipe.read_text())
        (work / "left over").touch()
        (out / "bin").mkdir()
        (out / "bin" / "thing").write_text(self.recipe.read_text())

    def fail(self, shell: install.Shell, work: Path, out: Path) -> None:
        """Build, then fail."""
        self.build(shell, work, out)
        shell.run("doing the impossible", "sh", "-c", "echo no such luck; exit 3", cwd=work)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    workshop = Workshop(tmp_path)
    monkeypatch.setenv("OTEL_RELIABILITY_CACHE", str(workshop.cache))
    monkeypatch.setattr(install, "VERSIONS", workshop.versions)
    monkeypatch.setattr(install, "BUILDERS", {"thing": workshop.build})
    return workshop


def test_builds_once_until_the_recipe_changes(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that fails leaves the one before it."""
    program = workshop.cache / "thing-1" / "bin" / "thing"
    assert install.main([]) == install.main(["thing"]) == 0
    assert (workshop.built, program.read_text()) == (["one"], "one")

    workshop.recipe.write_text("two")
    assert not install.components()["thing"].ready()
    monkeypatch.setattr(install, "BUILDERS", {"thing": workshop.fail})
    assert install.main([]) == 1
    assert program.read_text() == "one"

    monkeypatch.setattr(install, "BUILDERS", {"thing": workshop.build})
    assert install.main([]) == 0
    assert program.read_text() == "two"
    assert [path.name for path in workshop.cache.iterdir() if path.is_dir()] == ["thing-1"]


def test_any_error_of_a_build_is_a_reason_to_skip(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A build that raises ends without a traceback; tests skip with its reason until a later build
    succeeds.
    """

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


def test_every_part_of_the_collector_is_pinned() -> None:
    """go.mod pins exactly the versions of builder.yaml, and go.sum has the checksum of each, so a
    build needs no look-up.
    """
    parts = re.findall(r"gomod: (.+)", _text("collector/builder.yaml"))
    pinned = _text("collector/go.mod")
    sums = _text("collector/go.sum")

    assert len(parts) > 20
    assert [part for part in sorted(parts) if f"\t{part}\n" not in pinned] == []
    assert [part for part in sorted(parts) if f"{part} h1:" not in sums] == []


def test_the_collector_is_of_one_release() -> None:
    version = install.components()["collector"].version
    releases = re.findall(
        r"gomod: \S*(?:exporter|receiver|processor|connector)\S* v(\S+)",
        _text("collector/builder.yaml"),
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
