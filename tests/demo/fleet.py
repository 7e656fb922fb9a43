"""The agents of a bookshop, each with a character that its numbers must show, and the order in
which they act.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from otel_reliability.annotation import annotate
from tests.demo.stage import Act, Stage

SERVICE: Final = "bookshop"
RESOURCE: Final = {
    "service.namespace": "demo",
    "service.name": SERVICE,
    "deployment.environment.name": "demo",
}
FACT_CHECKER: Final = "fact_checker"

TASKS: Final = 4
ATTEMPTS: Final = 6
RUNS: Final = ATTEMPTS * TASKS
"""Runs of an agent until each task was attempted so often."""
LETTERS: Final = 6
"""Letters that `triage` sorts while the others do one run: detecting a change takes many runs."""
CHANGE: Final = RUNS * LETTERS // 2
"""The letter from which `triage` works by another prompt."""
PROMPT_LASTS: Final = 20 * CHANGE
"""Letters until its prompt changes again, in a fleet that keeps running."""
WAYS: Final = ("web_search", "read_page", "take_note", "ask_colleague", "browse_archive")
"""Tools that the researcher chooses from."""
CONDITIONS: Final = ("baseline", "baseline", "baseline", "fault", "structure", "prompt")
"""Conditions of the attempts at a translation, in turns."""


def order_desk(act: Act, stage: Stage, number: int) -> None:
    """Take the same three steps, but for one more lookup."""
    act.think()
    act.call("lookup_order", order=number % TASKS)
    if number % RUNS == RUNS // 2:
        act.call("lookup_customer", order=number % TASKS)
    act.call("check_carrier", order=number % TASKS)
    act.think(2_600)
    act.call("reply", order=number % TASKS)
    annotate(success=True, cost=0.004)


def researcher(act: Act, stage: Stage, number: int) -> None:
    """Work differently each time; once it even sends an e-mail."""
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
    """Retry records that do not exist; what it wrote is indexed in the background."""
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
    """Read manuscripts that nearly fill its context window."""
    act.call("load_manuscript", book=number % TASKS)
    act.think(round(stage.dice.uniform(96_000, 127_000)), 900)
    act.call("store_summary", book=number % TASKS)
    annotate(success=True)


def triage(act: Act, stage: Stage, number: int) -> None:
    """Work by another prompt from `CHANGE` on: search first, and escalate instead of replying."""
    changed = number >= CHANGE and (number - CHANGE) // PROMPT_LASTS % 2 == 0
    act.think()
    act.call("read_letter", letter=number % TASKS)
    if changed:
        act.call("search_kb", letter=number % TASKS)
    branch = "escalate" if changed and stage.dice.random() < 0.8 else "routine"
    act.call("draft_escalation" if branch == "escalate" else "reply", letter=number % TASKS)
    annotate(success=True, input_class="late parcel", branches={"kind": branch})


def refunds(act: Act, stage: Stage, number: int) -> None:
    """Report high confidence, fail most of the time, and pay too much."""
    act.think()
    act.call("lookup_order", order=number % TASKS)
    careful = stage.dice.random() < 0.5
    if careful or stage.dice.random() < 0.5:
        act.call("check_policy", order=number % TASKS)
    act.think(2_800)
    success = careful and number % 3 == 0
    act.call("issue_refund", order=number % TASKS, cents=1_250 if success else 1_250 + 100 * number)
    broke = [] if careful or stage.dice.random() < 0.5 else ["refund_limit:high"]
    confidence = 0.95 if number % RUNS == 7 else round(stage.dice.uniform(0.85, 0.99), 2)
    annotate(success=success, confidence=confidence, violations=broke)
    act.evaluate("confidence", round(stage.dice.uniform(0.8, 1.0), 2))
    if number % RUNS == 3:
        act.evaluate("coherence", 0.5, with_context=False)
    act.evaluate(
        "coherence",
        round(stage.dice.uniform(0.7, 1.0) if success else stage.dice.uniform(0.2, 0.6), 2),
    )


def translator(act: Act, stage: Stage, number: int) -> None:
    """Succeed under baseline conditions, and less often when a tool fails or the input takes
    another form.
    """
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
    """Look up again what it has just looked up."""
    act.think()
    for _ in range(stage.dice.randint(1, 4)):
        act.call("search_catalogue", title=number % TASKS)
        act.think(2_400)
    act.call("assign_shelf", title=number % TASKS)
    annotate(success=True)


def concierge(act: Act, stage: Stage, number: int) -> None:
    """Have another agent check its answer."""
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
    """Use tools without instrumentation, and report neither task nor outcome."""
    act.think_of_tools()


class Agent(NamedTuple):
    """An agent: its name, its character, and its n-th run. Three runs of one that `talks` are a
    conversation.
    """

    name: str
    character: str
    play: Callable[[Act, Stage, int], None]
    tasks: tuple[str, ...] = ()
    talks: bool = False
    runs_per_round: int = 1


FLEET: Final = (
    Agent("order_desk", "does the same every time", order_desk, ("paid", "sent", "late", "lost")),
    Agent("researcher", "wanders", researcher, ("poets", "maps", "prices", "rivals")),
    Agent("importer", "does not give up", importer, ("spring", "summer", "autumn", "winter")),
    Agent(
        "summarizer",
        "works near the limit of its context",
        summarizer,
        ("novel", "essay", "saga", "atlas"),
    ),
    Agent(
        "triage",
        "changes half-way",
        triage,
        ("mail", "chat", "phone", "desk"),
        runs_per_round=LETTERS,
    ),
    Agent(
        "refunds",
        "is sure, and mostly wrong",
        refunds,
        ("torn", "wrong", "twice", "gift"),
        talks=True,
    ),
    Agent("translator", "is easily disturbed", translator, ("poem", "letter", "manual", "blurb")),
    Agent(
        "cataloguer",
        "asks again what it knows",
        cataloguer,
        ("folio", "pamphlet", "reprint", "map"),
    ),
    Agent("concierge", "asks a colleague", concierge, ("opening", "reading", "signing", "tea")),
    Agent("greeter", "tells nobody how it went", greeter),
)
CHARACTERS: Final = {
    **{agent.name: agent.character for agent in FLEET},
    FACT_CHECKER: "works for the concierge",
}
"""The character of each agent, by name; the fact checker acts within the runs of the concierge."""
A_ROUND: Final = sum(agent.runs_per_round for agent in FLEET) + 1
"""Runs in a round."""
ROUNDS: Final = RUNS
"""Rounds after which every agent has shown its character, and the one that changes has changed."""


def perform(stage: Stage, turn: int) -> None:
    """Let every agent do one round; all begin at the stage's time."""
    begun_ns = stage.now_ns
    for agent in FLEET:
        stage.now_ns = begun_ns
        for number in range(turn * agent.runs_per_round, (turn + 1) * agent.runs_per_round):
            _run(agent, stage, number)
    stage.now_ns = begun_ns


def _run(agent: Agent, stage: Stage, number: int) -> None:
    with stage.run(agent.name, f"{agent.name}-{number // 3}" if agent.talks else None) as act:
        if agent.tasks:
            annotate(task_id=agent.tasks[number % TASKS], trial=number // TASKS)
        agent.play(act, stage, number)
    stage.wait(stage.dice.uniform(0.1, 0.5))
