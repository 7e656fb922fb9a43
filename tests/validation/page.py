"""Write docs/explanation/validation.md and its pictures from the recordings: `make validate` (about a quarter of an hour)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.metrics.recorded import gemini_rows, taubench_rows
from tests.validation import changing, foretelling
from tests.validation.pictures import Axis, curves, scatter

DOCS: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation"

SETS: Final = {
    "gemini-2.5-flash, tau2 airline": gemini_rows,
    "gpt-4o, tau-bench airline": taubench_rows,
}

HEAD: Final = """# Validation

<!-- Made from public recordings by `make validate`. -->

What the numbers are worth, measured on public benchmark runs whose outcome is known. Where a metric tells nothing, it says so.

## Which metrics foretell failure

None of these numbers look at the outcome. *AUROC*: how often a failed run has more of it than a succeeded one (.5: nothing
is told). *Within its task*: the same among the attempts at one task only; below .5 the attempts that differ from the others
are the right ones. *Spearman*: how far the order of tasks by their mean agrees with their order by failures (0: nothing).
In brackets: 95 % intervals, by resampling the tasks. A number *tells* what its interval says it tells.

"""

FORETOLD: Final = """
![A point a task: how far apart the effects of its attempts are, and how many fail](validation-tasks.svg)

## Whether an agent changed

### False alarms

The mean number of units to a false alarm, over 250 alarms each, with its lower 99 % bound, for agents that do not change. The
promise is at least c (`change.runs_per_false_alarm`); a bound under .9 c falls short of it. By chance alone about one cell in a
dozen does, so such a stream is followed for 1,000 alarms more. Both results are told, and it is called broken if all of them
together fall short.

"""

BROKEN: Final = """
### What breaks the promise

The promise is about units that come in random order. These do not, and the detector alarms for what is no change of the
agent. Tasks in blocks are recognised where task ids are known (then there is no verdict); turns are joined to sessions where
session ids are known; of a mix of work that swings, nothing in the telemetry tells.

"""

FOUND: Final = """
### Changes found

Streams of 200 recorded runs of one model, then 100 of another, at one false alarm in 10,000 runs. Beside it what a fixed
threshold does: an alarm when the Jensen–Shannon divergence of the tools in the last 40 runs from those in the first 40
exceeds .1; *too early* is the share of streams in which it alarms before anything changed.

"""


def main() -> None:
    """Write the page."""
    rows = {name: read() for name, read in SETS.items()}
    lines, found = changing.found()
    parts = [
        HEAD,
        foretelling.page(rows),
        FORETOLD,
        "\n".join(changing.promise()),
        BROKEN,
        "\n".join(changing.broken()),
        FOUND,
        "\n".join(lines),
        "\n![The share of streams in which the change is found, by units after it](validation-changes.svg)\n",
    ]
    (DOCS / "validation.md").write_text("".join(part if part.endswith("\n") else part + "\n" for part in parts))
    share = Axis("share of streams in which it is found", 0, 1)
    tasks = {name: foretelling.points(one) for name, one in rows.items()}
    apart, failing = Axis("mean effect distance of its attempts", 0, 1), Axis("share of its attempts that fail", 0, 1)
    (DOCS / "validation-tasks.svg").write_text(scatter(tasks, apart, failing))
    few = {name: found[name] for name in list(found)[:5]}
    (DOCS / "validation-changes.svg").write_text(curves(few, Axis("units after the change", 0, 100), share))


if __name__ == "__main__":
    main()
