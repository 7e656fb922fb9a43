"""Write docs/explanation/validation.md and its pictures from the recordings: `make validate` (about
a quarter of an hour).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.metrics.recorded import gemini_rows, swe_rows, swe_rows_by_file, taubench_rows
from tests.validation import changing, deciding, failing, grouping, prediction
from tests.validation.pictures import Axis, circles, curve, picture

DOCS: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation"

SETS: Final = {
    "gemini-2.5-flash, tau2 airline": gemini_rows,
    "gpt-4o, tau-bench airline": taubench_rows,
    "SWE-agent with gpt-4, SWE-bench Lite": swe_rows,
    "SWE-agent with gpt-4, effects by file": swe_rows_by_file,
}

HEAD: Final = """# Validation

<!-- Made from public recordings by `make validate`. -->

This page measures what the numbers predict, on public benchmark runs whose outcome is known. Weak results are included.

## Metrics that predict failure

None of these numbers uses the outcome. *AUROC*: how often a failed run has more of it than a succeeded one (.5: no
better than chance). *Within its task*: the same among the attempts at one task only; below .5, the attempts that differ from
the others are the right ones. *Spearman*: how far the order of tasks by their mean agrees with their order by failures (0: not
at all). In brackets: 95 % intervals, by resampling the tasks. *Predicts* lists what the interval separates from chance: `runs`
(which runs fail), `attempts` (which attempts at one task fail), `tasks` (which tasks fail more often).

What follows for you:

- **Customer service and other agents that act through an API**: watch `effect_agreement` and path distance. They show which
  tasks the agent is about to fail, without labels. They do not show which attempt at a task is the right one.
- **Coding agents**: all numbers are weaker. Set `tools.effect_key` to the argument that names the file (`edit` → `path`), so
  that attempts are compared by the files they change; then the effect distance of a run predicts its failure about as well as
  its path does. Retries and failed calls predict nothing.
- **Doing nothing is a failure that agreement cannot see**: attempts that change nothing agree perfectly. Watch
  `no_effect_share` too. It is low where every scratch file counts as an effect: name such tools in `tools.reads`.


"""

PREDICTED: Final = """
![A point a task: how far apart the effects of its attempts are, and how many fail](validation-tasks.svg)

## What a change alarm promises

At most one false alarm in `change.runs_per_false_alarm` runs on average (default 10,000), for an agent whose runs come in random
order. An alarm means *different by more than chance*, not *worse*.

### False alarms

An *observation* is a run, or a session where session ids are known. Each cell shows how many observations pass on average before
a false alarm, for an agent that does not change; the promise is at least c (`change.runs_per_false_alarm`), per agent and over
all signals together. In brackets: the lower 99 % bound of that mean, measured over 250 alarms. A bound of .9 c or more is
accepted, because 250 alarms do not measure it more exactly. A lower one occurs by chance in about one cell of twelve; that
stream is then measured for 1,000 alarms more. The promise is broken only if all 1,250 together stay below .9 c.

"""

BROKEN: Final = """
### What breaks the promise

The promise holds for observations in random order. These are not, and the detector raises an alarm though the agent did not
change. Tasks in blocks are recognized where task ids are known (then there is no result); turns are joined to sessions where
session ids are known. A mix of work that swings is recognized where requests are known
([below](#change-of-work-apart-from-change-of-the-agent)); here they are not.

"""

FOUND: Final = """
### Changes found

Streams of 200 recorded runs of one model, then 100 of another, at one false alarm in 10,000 runs. Next to it, a fixed
threshold: an alarm when the Jensen–Shannon divergence of the tools in the last 40 runs from those in the first 40
exceeds .1. *Too early*: the share of streams with an alarm before the change.

Tried, each at no more false alarms than promised, on the eight swaps below (share found within 50 runs of the hardest, the
swap to a fine-tuned twin; median delay of the easiest):

| variant | hardest found | easiest delay |
|---|---|---|
| five linear bets (until November 2026) | .50 | 16 |
| with a bet on ranks far from the middle or near it | .48 | 12 |
| with bets ½/√p and ½/√(1 − p) on extreme ranks (**in use**) | .83 | 6 |
| with steeper bets .4 p^−.6 and their mirror | .77 | 5 |
| one bet shared by all signals, instead of the mean over signals | .43 | 16 |
| a further signal: distance of all numbers together from their middle (with steeper bets) | .74 | 5 |
| further signals: distinct tools; share of the commonest tool; calls per model call | .84; .86; .86 | 6 |
| a further signal: number of model calls (**in use**) | .89 | 6 |
| values of the reference are ranked, too (**in use**) | .89 | 6 |
| with bets on ranks below 1/64, 1/32, … 1/4 (**in use**) | .88 | 4 |


"""

ERRORS: Final = """
### Errors that begin

80 runs of an agent whose calls differ, then as many of which more end in an error; c = 10,000. The bets on ranks below 1/64 to 1/4 are for them:
equal values share their ranks evenly, so that a rare value that comes often is no extreme rank, but one below its share. Without them, and with the
ranks of the first 40 runs left out, an agent whose every run began to fail was found after 17 runs (median), one of which half did after 88.

"""

FAILING = f"""
## What failing runs have in common

*Found*: features that go with failing, at a family-wise error of 5 % over all features of a recording. *Come again*: of those found in one half of the tasks,
how many point the same way in the other half, over {failing.HALVES} halves. *Shuffled*: the share of {failing.SHUFFLES} shuffles of the outcomes in which anything is found, which
the promise bounds at .05: outcomes of whole tasks change places among tasks with equally many runs, and within each task; then every run is a task of its own.

"""

DECIDING = f"""
## Deciding early

{deciding.EXPERIMENTS:,} simulated experiments each, with the target `success_rate>={deciding.TARGET:g}`, examined after every attempt, at most
{deciding.MAX_RUNS} attempts: what a fixed design takes to know any rate to within 5 points. *Wrong*: PASS below the target, FAIL from it on; the promise is at
most .05, over all looks together. The last line has tasks that are unlike one another: the rate is the mean over them.

"""


def main() -> None:
    rows = {name: read() for name, read in SETS.items()}
    lines, found = changing.found()
    parts = [
        HEAD,
        prediction.page(rows),
        PREDICTED,
        "\n".join(changing.promise()),
        BROKEN,
        "\n".join(changing.broken()),
        FOUND,
        "\n".join(lines),
        (
            "\n![The share of streams in which the change is found, by observations after "
            "it](validation-changes.svg)\n"
        ),
        ERRORS,
        "\n".join(changing.errors()),
        grouping.page(),
        FAILING,
        "\n".join(failing.table()),
        DECIDING,
        "\n".join(deciding.table()),
    ]
    (DOCS / "validation.md").write_text(
        "".join(part if part.endswith("\n") else part + "\n" for part in parts)
    )
    share = Axis("share of streams in which it is found", 0, 1)
    tasks = {name: prediction.points(one) for name, one in rows.items()}
    apart = Axis("mean effect distance of its attempts", 0, 1)
    fails = Axis("share of its attempts that fail", 0, 1)
    (DOCS / "validation-tasks.svg").write_text(picture(tasks, apart, fails, circles))
    few = {name: found[name] for name in list(found)[:5]}
    after = Axis("observations after the change", 0, 100)
    (DOCS / "validation-changes.svg").write_text(picture(few, after, share, curve))


if __name__ == "__main__":
    main()
