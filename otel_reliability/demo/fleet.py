"""The agents of a bookshop, each with a character, and the order in which they act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from otel_reliability.annotation import annotate
from otel_reliability.demo import characters
from otel_reliability.demo.characters import FACT_CHECKER, LETTERS, RUNS, TASKS
from otel_reliability.demo.stage import Act, Stage

NAMESPACE: Final = "demo"
SERVICE: Final = "bookshop"
RESOURCE: Final = {
    "service.namespace": NAMESPACE,
    "service.name": SERVICE,
    "deployment.environment.name": "demo",
}


class Agent(NamedTuple):
    """An agent's name, what it is like, and what it does in its n-th run."""

    name: str
    character: str
    play: Callable[[Act, Stage, int], None]
    tasks: tuple[str, ...] = ()
    talks: bool = False
    """Whether three runs of it are one conversation."""
    turns: int = 1
    """Runs in each of its turns."""


FLEET: Final = (
    Agent("order_desk", "does the same every time", characters.order_desk, ("paid", "sent", "late", "lost")),
    Agent("researcher", "wanders", characters.researcher, ("poets", "maps", "prices", "rivals")),
    Agent("importer", "does not give up", characters.importer, ("spring", "summer", "autumn", "winter")),
    Agent("summarizer", "works near the limit of its context", characters.summarizer, ("novel", "essay", "saga", "atlas")),
    Agent("triage", "changes half-way", characters.triage, ("mail", "chat", "phone", "desk"), turns=LETTERS),
    Agent("refunds", "is sure, and often wrong", characters.refunds, ("torn", "wrong", "twice", "gift"), talks=True),
    Agent("translator", "is easily disturbed", characters.translator, ("poem", "letter", "manual", "blurb")),
    Agent("cataloguer", "asks again what it knows", characters.cataloguer, ("folio", "pamphlet", "reprint", "map")),
    Agent("concierge", "asks a colleague", characters.concierge, ("opening", "reading", "signing", "tea")),
    Agent("greeter", "tells nobody how it went", characters.greeter),
)  # fmt: skip
COLLEAGUES: Final = {FACT_CHECKER: "works for the concierge"}
"""Agents that act within the runs of others."""
CHARACTERS: Final = {**{agent.name: agent.character for agent in FLEET}, **COLLEAGUES}
"""What each agent is like, by name."""
A_ROUND: Final = sum(agent.turns for agent in FLEET) + len(COLLEAGUES)
"""Runs in a round."""
ROUNDS: Final = RUNS
"""Rounds after which every agent has shown its character, and the one that changes has changed."""


def perform(stage: Stage, turn: int) -> None:
    """Let every agent do one turn; all begin at the stage's time, as if side by side."""
    begun_ns = stage.now_ns
    for agent in FLEET:
        stage.now_ns = begun_ns
        for number in range(turn * agent.turns, (turn + 1) * agent.turns):
            _run(agent, stage, number)
    stage.now_ns = begun_ns


def _run(agent: Agent, stage: Stage, number: int) -> None:
    with stage.run(agent.name, f"{agent.name}-{number // 3}" if agent.talks else None) as act:
        if agent.tasks:
            annotate(task_id=agent.tasks[number % TASKS], trial=number // TASKS)
        agent.play(act, stage, number)
    stage.wait(stage.dice.uniform(0.1, 0.5))
