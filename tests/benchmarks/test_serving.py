from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter

import pytest

from benchmarks import serving
from tests.telemetry.receivers import over_http

BURN = "import sys, time\nwhile time.process_time() < 0.3: pass\n"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); input()"


def test_each_request_is_sent_once_over_few_connections() -> None:
    bodies = [str(number).encode() for number in range(40)]
    with over_http() as receiver:
        receiver.answers.append(503)
        serving.send(receiver.url.removeprefix("http://"), bodies)

    sent = Counter(request.body for request in receiver.came)
    assert (sent.keys(), sent.total()) == (set(bodies), 41)  # the refused one is sent again
    assert len({request.client for request in receiver.came}) <= serving.CONNECTIONS


def test_a_rejected_request_ends_the_measurement() -> None:
    """Otherwise a row would report the cost of less work than it names."""
    with over_http() as receiver:
        receiver.answers.append(400)
        with pytest.raises(serving.Rejected, match="400"):
            serving.send(receiver.url.removeprefix("http://"), [b"a", b"b"])


def test_cpu_of_children_counts() -> None:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        found = 0.0
        deadline = time.monotonic() + 30
        while found < 0.3 and time.monotonic() < deadline:
            time.sleep(0.05)
            found = serving.cpu(process.pid)
        process.communicate(b"\n")

    assert found >= 0.3
