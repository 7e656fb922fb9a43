"""Six agents of a bookshop, each with a character."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from otel_reliability.annotation import annotate
from otel_reliability.demo.stage import Act, Stage

ATTEMPTS: Final = 6
TASKS: Final = 4
RUNS: Final = ATTEMPTS * TASKS
"""Runs of an agent: every task is attempted so often."""
LETTERS: Final = 6
"""Letters that `triage` sorts while the others do one run: it takes many runs to tell a change from chance."""


class Agent(NamedTuple):
    """An agent's name, what it is like, and what it does in its n-th run, from 0 on."""

    name: str
    character: str
    play: Callable[[Act, Stage, int], None]
    tasks: tuple[str, ...]
    talks: bool = False
    turns: int = 1
    """Runs in each of its turns."""

    @property
    def runs(self) -> int:
        """All its runs."""
        return RUNS * self.turns


def perform(stage: Stage) -> None:
    """Let every agent do all its runs, in turns."""
    for turn in range(RUNS):
        for agent in FLEET:
            for number in range(turn * agent.turns, (turn + 1) * agent.turns):
                _run(agent, stage, number)


def _run(agent: Agent, stage: Stage, number: int) -> None:
    with stage.run(agent.name, f"{agent.name}-{number // 3}" if agent.talks else None) as act:
        annotate(task_id=agent.tasks[number % TASKS], trial=number // TASKS)
        agent.play(act, stage, number)


def _order_desk(act: Act, stage: Stage, number: int) -> None:
    """Always the same three steps, but for one second look."""
    act.think()
    act.call("lookup_order", order=number % TASKS)
    if number == RUNS // 2:
        act.call("lookup_customer", order=number % TASKS)
    act.call("check_carrier", order=number % TASKS)
    act.think(2_600)
    act.call("reply", order=number % TASKS)
    annotate(success=True)


def _researcher(act: Act, stage: Stage, number: int) -> None:
    """Never twice the same way; once it even writes to somebody."""
    act.think(3_000)
    for step in range(stage.dice.randint(2, 6)):
        act.call(stage.dice.choice(("web_search", "web_search", "read_page", "take_note", "ask_colleague")), step=step)
        act.think(3_500 + 900 * step)
    if number == RUNS // 3:
        act.call("send_email", to="publisher")
    act.call("summarize", pages=number)
    annotate(success=stage.dice.random() < 0.8)


def _importer(act: Act, stage: Stage, number: int) -> None:
    """Some records do not exist, and nobody told it to give up."""
    act.think()
    missing = number in {5, 11, 17}
    for _ in range(6 if missing else 0):
        act.call("fetch_record", ok=False, record=40 + number)
        act.think(2_200)
    if not missing:
        act.call("fetch_record", record=40 + number)
        act.call("write_record", record=40 + number)
    annotate(success=not missing)


def _summarizer(act: Act, stage: Stage, number: int) -> None:
    """The manuscripts it reads fill nearly all of its context."""
    act.call("load_manuscript", book=number % TASKS)
    act.think(round(stage.dice.uniform(96_000, 127_000)), 900)
    act.call("store_summary", book=number % TASKS)
    annotate(success=True)


def _triage(act: Act, stage: Stage, number: int) -> None:
    """Half-way its prompt was changed: now it searches first, and escalates where it used to answer."""
    changed = number >= RUNS * LETTERS // 2
    act.think()
    act.call("classify", letter=number)
    if changed:
        act.call("search_kb", letter=number)
    branch = "escalate" if changed and stage.dice.random() < 0.6 else "routine"
    act.call("draft_escalation" if branch == "escalate" else "reply", letter=number)
    annotate(success=True, input_class="late parcel", branches={"kind": branch})


def _refunds(act: Act, stage: Stage, number: int) -> None:
    """Sure of itself, and wrong half the time; and it pays more than it may."""
    act.think()
    act.call("lookup_order", order=number % TASKS)
    success = stage.dice.random() < 0.5
    if success or stage.dice.random() < 0.5:
        act.call("check_policy", order=number % TASKS)
    act.think(2_800)
    act.call("issue_refund", order=number % TASKS, cents=1_250 if success else 1_250 + 100 * number)
    broke = [] if success or stage.dice.random() < 0.5 else ["refund_limit:high"]
    annotate(success=success, confidence=round(stage.dice.uniform(0.85, 0.99), 2), violations=broke)


FLEET: Final = (
    Agent("order_desk", "does the same every time", _order_desk, ("paid", "sent", "late", "lost")),
    Agent("researcher", "wanders", _researcher, ("poets", "maps", "prices", "rivals")),
    Agent("importer", "does not give up", _importer, ("spring", "summer", "autumn", "winter")),
    Agent("summarizer", "works near the limit of its context", _summarizer, ("novel", "essay", "saga", "atlas")),
    Agent("triage", "changes half-way", _triage, ("mail", "chat", "phone", "desk"), turns=LETTERS),
    Agent("refunds", "is sure, and often wrong", _refunds, ("torn", "wrong", "twice", "gift"), talks=True),
)
