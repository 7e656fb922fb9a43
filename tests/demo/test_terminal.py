"""The demo in a terminal: it follows live, goes on until Ctrl-C, and then leaves nothing but the
file.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo.fleet import ROUNDS
from tests.real.process import untraced
from tests.real.terminal import Terminal
from tests.real.waiting import until
from tests.real.web import answers

if sys.platform == "win32":
    pytest.skip("terminals are made another way there", allow_module_level=True)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    env = {**untraced(), "TMPDIR": str(tmp_path)}
    found = Terminal(env, 50, "otel_reliability.cli", "demo", "--pace", "0.1", folder=tmp_path)
    yield found
    found.close()


def test_it_follows_live_until_ctrl_c_and_leaves_the_file(
    terminal: Terminal, tmp_path: Path
) -> None:
    until(lambda: "of the fleet so far" in terminal.seen(), "the verdict")
    told = terminal.seen()
    (page,) = set(re.findall(r"its page\s+(http://[\d.:]+)/", told))
    (metrics,) = set(re.findall(r"(http://[\d.:]+/metrics)", told))
    until(lambda: _rounds(terminal) > ROUNDS + 10, "the fleet to go on")
    lives = answers(f"{page}/api/v1/agents"), answers(metrics)
    code = terminal.end(signal.SIGINT)

    assert "Round 1 of 24" in told
    assert told.index("is the least reliable so far") < told.index("refunds fails more often")
    assert (lives, code) == ((True, True), 0)
    assert not answers(f"{page}/healthz")
    assert [file.name for file in tmp_path.iterdir()] == ["demo-spans.jsonl"]


def _rounds(terminal: Terminal) -> int:
    found = re.findall(r"Live: ([\d,]+) rounds of the fleet so far", terminal.seen())
    return int(found[-1].replace(",", "")) if found else 0
