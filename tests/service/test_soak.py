from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.service.soak import OF_WORKERS, PAGE, RESULTS, ROOT, TRIALS, page


def test_the_page_says_what_the_results_say() -> None:
    results: dict[str, Any] = (
        json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    )
    assert PAGE.read_text(encoding="utf-8") == page(results)
    assert set(results) <= {trial.name for trial in (*TRIALS, *OF_WORKERS)}


def test_every_trial_is_a_test() -> None:
    wanted = [test for trial in (*TRIALS, *OF_WORKERS) for test in trial.tests]
    options = ["--collect-only", "-q", "--no-cov", "--hypothesis-profile=soak", "-p", "no:randomly"]
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", *wanted, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout
    assert all(
        any(line.startswith(test) for line in collected.stdout.splitlines()) for test in wanted
    )
