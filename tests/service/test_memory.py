from __future__ import annotations

import pytest

from otel_reliability.service import health
from otel_reliability.service.health import REASON, Readiness, ResidentMemory, container_limit


def test_above_the_line_nothing_is_taken_until_there_is_room_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It must fall a little below before requests are taken again, so that it does not flutter."""
    readiness = Readiness()
    used = [90, 101, 99, 96, 94, 102]
    watch = ResidentMemory(100, readiness)
    seen: list[bool] = []
    monkeypatch.setattr(health, "resident", lambda: used.pop(0))
    while used:
        watch()
        seen.append(REASON in readiness.reasons)

    assert seen == [False, True, True, True, False, True]
    assert watch.crossings == 2


def test_without_a_line_it_only_looks() -> None:
    """On a machine without a container the operator knows best."""
    readiness = Readiness()
    watch = ResidentMemory(0, readiness)
    watch.limit = None
    watch()

    assert not readiness.reasons
    assert watch.used > 1_000_000


@pytest.mark.parametrize(
    ("told", "limit"),
    [("1000\n", 900), ("max\n", None), (str(1 << 62), None), ("", None), (None, None)],
)
def test_a_container_s_limit_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    told: str | None,
    limit: int | None,
) -> None:
    file = tmp_path_factory.mktemp("cgroup") / "memory.max"
    if told is not None:
        file.write_text(told)
    monkeypatch.setattr(health, "_LIMITS", (file,))

    assert container_limit() == limit
