"""The recipe for a metric works: a copy of the package that follows it has
the metric everywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STABILITY = Path("otel_reliability/metrics/stability")

CHECK = """
import random
from otel_reliability import metrics
from otel_reliability.testing import row
from otel_reliability.metrics.stability.retried_call_share import RetriedCallShare
from otel_reliability.telemetry import names
from otel_reliability.windows.window import measure
from otel_reliability.testing import call, run
from tests.metrics import laws
{reference}
dice = random.Random(7)
rows = [row("a " * (length := dice.randrange(4)), retries=min(length, 1)) for _ in range(60)]
laws.agrees(RetriedCallShare, retried_call_share, rows, 7)
laws.evict_undoes_add(RetriedCallShare, rows[:20], rows[20:])
laws.order_is_nothing(RetriedCallShare, rows[:20], rows[20:])
laws.reading_changes_nothing(RetriedCallShare, rows)
laws.nothing_is_none(RetriedCallShare)
laws.is_documented(RetriedCallShare)
laws.names_are_unique(metrics.SPECS)
assert "agent.reliability.retried_call_share" in {{gauge.name for gauge in names.gauges()}}
again = (call("a", ok=False), call("a", retry=True, chain=1))
window = measure([run(["a", "a"], 1, tool_calls=again), run(["a"], 2, tool_calls=(call("a"),) * 2)])
assert window.reading("retried_call_share").value == 0.25
"""


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    """The code of the page, in order: the file, the import, the row, the fixture."""
    page = (ROOT / "docs" / "contributing" / "add-a-metric.md").read_text(encoding="utf-8")
    return re.findall(r"^```(?:python|text)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def copy(blocks: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package after the recipe's first two steps."""
    file, line, row, _ = blocks
    root = tmp_path_factory.mktemp("recipe")
    shutil.copytree(
        ROOT / "otel_reliability",
        root / "otel_reliability",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (root / STABILITY / "retried_call_share.py").write_text(file, encoding="utf-8")
    table = root / STABILITY / "__init__.py"
    text = table.read_text(encoding="utf-8")
    text = text.replace(
        "from otel_reliability.metrics.stability.flag import",
        f"{line}from otel_reliability.metrics.stability.flag import",
    )
    table.write_text(text.replace("    Loops,\n)", f"    Loops,\n{row})"), encoding="utf-8")
    return root


def _python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={"PYTHONPATH": f"{root}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_metric_keeps_the_laws_and_is_emitted(copy: Path, blocks: list[str]) -> None:
    """It agrees with the plain formula at every step, leaves no trace, has a gauge, and a window
    reads it.
    """
    done = _python(copy, "-c", CHECK.format(reference=blocks[3]))

    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_line_explains_it(copy: Path) -> None:
    done = _python(copy, "-m", "otel_reliability.cli", "explain", "retried_call_share")

    assert done.returncode == 0, done.stderr
    assert "Share of retried calls" in done.stdout
