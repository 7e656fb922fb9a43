"""What the agents of the bookshop do in their n-th run, from 0 on: each has a character that its numbers must show."""

from __future__ import annotations

from typing import Final

from otel_reliability.annotation import annotate
from otel_reliability.demo.stage import Act, Stage

TASKS: Final = 4
ATTEMPTS: Final = 6
RUNS: Final = ATTEMPTS * TASKS
"""Runs of an agent until each task was attempted so often."""
LETTERS: Final = 6
"""Letters that `triage` sorts while the others do one run: it takes many runs to tell a change from chance."""
CHANGE: Final = RUNS * LETTERS // 2
"""The letter from which `triage` works by another prompt."""
PROMPT_LASTS: Final = 20 * CHANGE
"""Letters until somebody changes its prompt again, in a fleet that goes on."""
WAYS: Final = ("web_search", "read_page", "take_note", "ask_colleague", "browse_archive")
"""What the researcher may do next."""
CONDITIONS: Final = ("baseline", "baseline", "baseline", "fault", "structure", "prompt")
"""How the attempts at a translation are disturbed, in turns."""


def order_desk(act: Act, stage: Stage, number: int) -> None:
    """Always the same three steps, but for one second look."""
    act.think()
    act.call("lookup_order", order=number % TASKS)
    if number % RUNS == RUNS // 2:
        act.call("lookup_customer", order=number % TASKS)
    act.call("check_carrier", order=number % TASKS)
    act.think(2_600)
    act.call("reply", order=number % TASKS)
    annotate(success=True, cost=0.004)


def researcher(act: Act, stage: Stage, number: int) -> None:
    """Never twice the same way; once it even writes to somebody."""
    act.think(3_000)
    steps = [stage.dice.choice(WAYS) for _ in range(stage.dice.randint(2, 6))]
    for step, tool in enumerate(steps):
        act.call(tool, url="https://books.example/" if tool == "read_page" else None, step=step)
        act.think(3_500 + 900 * step)
    if number % RUNS == RUNS // 3:
        act.call("send_email", to="publisher")
    act.call("summarize", pages=number)
    annotate(success=stage.dice.random() < 0.8, branches={"where to begin": steps[0]})


def importer(act: Act, stage: Stage, number: int) -> None:
    """Some records do not exist, and nobody told it to give up. What it wrote is indexed later."""
    act.think()
    missing = number % RUNS in {5, 11, 17}
    for _ in range(6 if missing else 0):
        act.call("fetch_record", ok=False, record=40 + number)
        act.think(2_200)
    if not missing:
        act.call("fetch_record", record=40 + number)
        act.call("write_record", record=40 + number)
        act.think_in_background()
    annotate(success=not missing)


def summarizer(act: Act, stage: Stage, number: int) -> None:
    """The manuscripts it reads fill nearly all of its context."""
    act.call("load_manuscript", book=number % TASKS)
    act.think(round(stage.dice.uniform(96_000, 127_000)), 900)
    act.call("store_summary", book=number % TASKS)
    annotate(success=True)


def triage(act: Act, stage: Stage, number: int) -> None:
    """Half-way its prompt was changed: now it searches first, and escalates where it used to answer."""
    changed = number >= CHANGE and (number - CHANGE) // PROMPT_LASTS % 2 == 0
    act.think()
    act.call("read_letter", letter=number % TASKS)
    if changed:
        act.call("search_kb", letter=number % TASKS)
    branch = "escalate" if changed and stage.dice.random() < 0.6 else "routine"
    act.call("draft_escalation" if branch == "escalate" else "reply", letter=number % TASKS)
    annotate(success=True, input_class="late parcel", branches={"kind": branch})


def refunds(act: Act, stage: Stage, number: int) -> None:
    """Sure of itself, and wrong half the time; and it pays more than it may. Once it tells its confidence in percent."""
    act.think()
    act.call("lookup_order", order=number % TASKS)
    success = stage.dice.random() < 0.5
    if success or stage.dice.random() < 0.5:
        act.call("check_policy", order=number % TASKS)
    act.think(2_800)
    act.call("issue_refund", order=number % TASKS, cents=1_250 if success else 1_250 + 100 * number)
    broke = [] if success or stage.dice.random() < 0.5 else ["refund_limit:high"]
    confidence = 95 if number % RUNS == 7 else round(stage.dice.uniform(0.85, 0.99), 2)
    annotate(success=success, confidence=confidence, violations=broke)
    act.judge("confidence", round(stage.dice.uniform(0.8, 1.0), 2))
    if number % RUNS == 3:
        act.judge_without_saying_whom("coherence", 0.5)
    act.judge("coherence", round(stage.dice.uniform(0.7, 1.0) if success else stage.dice.uniform(0.2, 0.6), 2))


def translator(act: Act, stage: Stage, number: int) -> None:
    """Good on ordinary days. When a tool fails, or the text comes in another form or other words, less so."""
    condition = CONDITIONS[number // TASKS % ATTEMPTS]
    act.think()
    act.call("detect_language", text=number % TASKS)
    if condition == "fault":
        act.call("glossary", ok=False, text=number % TASKS)
    act.call("glossary", text=number % TASKS)
    act.think(4_000, 400)
    act.call("store_translation", text=number % TASKS)
    chances = {"baseline": 0.95, "fault": 0.6, "structure": 0.5, "prompt": 0.75}
    annotate(success=stage.dice.random() < chances[condition], condition=condition)


def cataloguer(act: Act, stage: Stage, number: int) -> None:
    """Looks up again what it has just looked up."""
    act.think()
    for _ in range(stage.dice.randint(1, 4)):
        act.call("search_catalogue", title=number % TASKS)
        act.think(2_400)
    act.call("assign_shelf", title=number % TASKS)
    annotate(success=True)


def concierge(act: Act, stage: Stage, number: int) -> None:
    """Has another agent check what it says."""
    act.think()
    with act.ask(FACT_CHECKER) as checker:
        checker.call("read_article", article=number % TASKS)
        if stage.dice.random() < 0.2:
            checker.call("read_archive", article=number % TASKS)
        checker.think(5_000)
        annotate(task_id="claim", success=True)
    act.think(3_000)
    act.call("reply", guest=number % TASKS)
    annotate(success=True)


def greeter(act: Act, stage: Stage, number: int) -> None:
    """Its model asks for tools that nobody instrumented, nor does anybody say what it was asked, and how it went."""
    act.think_of_tools()


FACT_CHECKER: Final = "fact_checker"
