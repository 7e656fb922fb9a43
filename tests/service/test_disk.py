from __future__ import annotations

import errno
import io
import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, cast

import grpc
import pytest

from otel_reliability.model.run import CloseReason
from otel_reliability.state import salvage
from tests.real.waiting import until
from tests.service.keeping import Kept, request
from tests.service.running import Running, body_of, run_of, serving

SIZE = 6 * 1024 * 1024


class Disk(Protocol):
    """A place that can be full."""

    path: Path

    def fill(self) -> None: ...

    def free(self) -> None: ...


class Small:
    """A disk of its own, in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            for size in (64 * 1024, 1):
                while _written(file, size):
                    pass

    def free(self) -> None:
        self._filler.unlink()


def _written(file: io.FileIO, size: int) -> bool:
    try:
        return file.write(bytes(size)) == size
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


class Quota:
    """A directory in which no file grows. For where nothing can be mounted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        largest = max((file.stat().st_size for file in self.path.iterdir()), default=0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, self._limits[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)


def mounted(path: Path) -> str | None:
    """Mount a small disk, if that is allowed. Gives the command that did."""
    for sudo in ([], ["sudo", "-n"]):
        if sudo and shutil.which(sudo[0]) is None:
            continue
        size = f"size={SIZE},mode=0777,uid={os.getuid()}"
        mount = [*sudo, "mount", "-t", "tmpfs", "-o", size, "otel-reliability-test", str(path)]
        if (
            shutil.which("mount")
            and not subprocess.run(mount, capture_output=True, check=False).returncode
        ):
            return " ".join([*sudo, "umount"])
    return None


@pytest.fixture
def disk(tmp_path: Path, record_property: Any) -> Iterator[Disk]:
    """A disk that can be full: one of its own where that can be had, else a limit of files."""
    path = tmp_path / "disk"
    path.mkdir()
    umount = mounted(path)
    record_property("disk", "quota" if umount is None else "tmpfs")
    found: Disk = Quota(path) if umount is None else Small(path)
    try:
        yield found
    finally:
        if umount is None:
            found.free()
        else:
            subprocess.run([*umount.split(), "-l", str(path)], check=True)


def sent(running: Running, trace: int) -> bool:
    """Send one run. Whether it was taken; if not, it said when to come again."""
    answer = running.post("traces", body_of(run_of(trace, start=float(trace))))
    assert answer.status in {200, 503}
    if answer.status == 503:
        assert answer.headers["Retry-After"] == "5"
    return answer.status == 200


def on_disk(path: Path, to: Path) -> list[str]:
    """Every run that would be there if the process were killed now."""
    shutil.copytree(path, to, ignore=shutil.ignore_patterns("filler"))
    kept = Kept(to)
    kept.finalize()
    kept.engine.flush(CloseReason.SHUTDOWN)
    kept.die()
    return kept.run_ids()


def test_a_service_on_a_full_disk_acknowledges_nothing_that_it_cannot_keep(
    disk: Disk, tmp_path: Path
) -> None:
    with serving(state=str(disk.path)) as running:
        taken = [trace for trace in range(1, 6) if sent(running, trace)]
        assert len(taken) == 5
        disk.fill()
        refused: list[int] = []
        for trace in range(6, 5_000):
            (taken if sent(running, trace) else refused).append(trace)
            if len(refused) == 20:
                break
        with pytest.raises(grpc.RpcError) as error:
            running.call(body_of(run_of(9_000)))
        refusal = cast("Any", error.value)
        ready = running.get("ui", "/readyz")

        assert len(refused) == 20
        assert refusal.code() is grpc.StatusCode.UNAVAILABLE
        assert "google.rpc.retryinfo-bin" in {key for key, _ in refusal.trailing_metadata()}
        assert (ready.status, list(json.loads(ready.body)["reasons"])) == (503, ["state"])
        assert running.get("ui", "/healthz").status == 200
        assert running.get("metrics", "/metrics").status == 200
        assert len(on_disk(disk.path, tmp_path / "copy")) == len(taken)

        disk.free()
        running.clock.advance(10.0)
        until(lambda: running.get("ui", "/readyz").status == 200, "the service to be ready again")
        assert all(sent(running, trace) for trace in refused)
        running.finalize()
        assert running.sum("agent_reliability_runs_total") == len(taken) + len(refused)


def test_a_start_on_a_full_disk_waits_for_room(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvage, "RETRY_INTERVAL_S", 0.05)
    kept = Kept(disk.path)
    for trace in range(1, 11):
        kept.take(request(trace))
    kept.persistence.close()
    disk.fill()
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(Kept, disk.path, kept.fake)
        if isinstance(disk, Small):
            with pytest.raises(TimeoutError):
                starting.result(0.5)
        disk.free()
        again = starting.result(30)
    assert again.engine.open_runs == 10
    assert not list(disk.path.glob("*.damaged-*"))
    again.die()


def test_while_no_file_can_grow_nothing_is_lost(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    accepted = [trace for trace in range(1, 6) if kept.take(request(trace))]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(file.stat().st_size for file in tmp_path.glob("state.db*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        refused = [trace for trace in range(100, 200) if not kept.take(request(trace))]
        kept.wind(10.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused
    accepted += [trace for trace in range(100, 200) if trace not in refused]

    for trace in refused:
        assert kept.take(request(trace))
    kept = kept.again()
    kept.finalize()
    assert len(kept.run_ids()) == len(accepted) + len(refused)
