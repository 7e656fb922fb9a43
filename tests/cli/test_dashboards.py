from __future__ import annotations

from pathlib import Path

import pytest

from otel_reliability.dashboards import FILES
from tests.cli.command_line import call


def test_it_writes_everything_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "dashboards", tmp_path / "new")

    assert done.code == 0
    assert done.out.split() == [str(tmp_path / "new" / path) for path in FILES.values()]
    assert all(Path(line).is_file() for line in done.out.split())


def test_it_overwrites_only_when_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "dashboards", tmp_path)

    again = call(capsys, "dashboards", tmp_path)
    forced = call(capsys, "dashboards", tmp_path, "--force", "--datasource", "mimir")

    assert again.code == 2
    assert "--force" in again.err
    assert again.out == ""
    assert forced.code == 0
    assert 'datasourceUid: "mimir"' in (tmp_path / FILES["alerting.yaml"]).read_text(encoding="utf-8")
