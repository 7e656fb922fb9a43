"""Write the sample of a state directory: `python -m tests.service.sample`.

One sample stands for each layout that was ever released; the tests read them all. Until the first
release a sample may be replaced, from then on it stays.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from otel_reliability.state import store
from otel_reliability.testing import FakeClock
from tests.service.keeping import Kept, halves, request

SAMPLES: Final = Path(__file__).parent / "samples"
RUNS: Final = 20
NOW: Final = 1_000.0
"""When the clock of a sample begins."""


def life(path: Path) -> Kept:
    """Live for a while: final runs, one that is closed, one of which half has come, sessions, a
    request that was malformed.
    """
    kept = Kept(path, FakeClock(NOW))
    for trace in range(1, RUNS + 1):
        kept.take(request(trace))
        kept.wind(5.0)
    kept.wind(60.0)
    kept.take(request(RUNS + 1)._replace(malformed={"span_id": 2}))
    kept.wind(3.0)
    kept.take(halves(RUNS + 2)[0])
    return kept


def main() -> None:
    path = SAMPLES / f"layout-{store.LAYOUT}"
    shutil.rmtree(path, ignore_errors=True)
    life(path).persistence.close()
    for name in ("lock", "hash.key"):
        (path / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
