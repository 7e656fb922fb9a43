"""Input groups: what they make of the numbers, in other languages too, and of change detection: the
third part of docs/explanation/validation.md.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.change.points import MIX, NEW_REQUESTS
from otel_reliability.conventions.sketch import sketch_of
from otel_reliability.metrics.stability.effect_agreement import EffectAgreement
from otel_reliability.model.row import Row
from otel_reliability.statistics.likeness import groups_of
from otel_reliability.windows.window import measure
from tests.change.test_work import alarm_at, new_from, notes, observations, steady, swinging
from tests.metrics.recorded import taubench_rows
from tests.shared import shared
from tests.validation.prediction import spearman
from tests.windows.test_input_groups import streams

SEEDS: Final = 10
RUNS: Final = 500
AGENTS: Final = {"steady": "≥ 90", "noisy": "70 to 88", "random": "≤ 66"}

OTHERS: Final = {
    "German": (
        ("ich möchte meine Bestellung stornieren", "bitte stornieren Sie meine letzte Bestellung",
         "kann ich die Bestellung noch stornieren"),
        ("wo bleibt mein Paket", "wann kommt mein Paket an", "mein Paket ist noch nicht angekommen"),
        ("ich habe mein Passwort vergessen", "bitte setzen Sie mein Passwort zurück",
         "wie kann ich das Passwort ändern"),
        ("wie wird das Wetter morgen", "regnet es morgen in Berlin", "das Wetter am Wochenende"),
    ),
    "Spanish": (
        ("quiero cancelar mi pedido", "por favor cancele mi último pedido",
         "todavía puedo cancelar el pedido"),
        ("dónde está mi paquete", "cuándo llega mi paquete", "mi paquete no ha llegado todavía"),
        ("he olvidado mi contraseña", "cambie mi contraseña por favor",
         "cómo puedo restablecer la contraseña"),
        ("qué tiempo hace mañana", "va a llover mañana en Madrid", "el tiempo del fin de semana"),
    ),
    "English": (
        ("i want to cancel my order", "please cancel my last order",
         "is it still possible to cancel the order"),
        ("where is my parcel", "when does my parcel arrive", "my parcel has not arrived yet"),
        ("i forgot my password", "please reset my password", "how can i change the password"),
        ("what is the weather tomorrow", "does it rain tomorrow in berlin",
         "the weather at the weekend"),
    ),
}  # fmt: skip
"""Four kinds of request, three sentences each, in three languages."""


def scores() -> Iterator[str]:
    """Yield the scores of agents of twenty intents: without ids, with ids, with nothing known."""
    yield "| requests | agent | wanted | groups | task ids | inputs unknown |"
    yield "|---|---|---|---|---|---|"
    for name in ("clinc", "banking"):
        made = [streams(name, seed) for seed in range(SEEDS)]
        for agent, wanted in AGENTS.items():
            found = [
                [_score(how, one[agent]) for one in made] for how in ("groups", "ids", "unknown")
            ]
            cells = " | ".join(f"{fmean(each):.0f}" for each in found)
            yield f"| {name} | {agent} | {wanted} | {cells} |"


def _score(how: str, stream: Sequence[tuple[str, Any]]) -> float:
    runs = [run for _, run in stream]
    if how == "ids":
        runs = [run._replace(task_id=intent) for intent, run in stream]
    elif how == "unknown":
        runs = [run._replace(request=None) for run in runs]
    score = measure(runs).reading("score").value
    assert score is not None
    return score


def failing_groups() -> float:
    """Return Spearman's correlation of how far apart the effects of a group are with its failures:
    tau-bench airline, groups by the first message of the user.
    """
    path = shared("corpora/inputs/taubench_airline_first_messages.json.gz")
    texts = {
        (str(one["task"]), one["trial"]): one["first_user_message"]
        for one in json.loads(gzip.decompress(path.read_bytes()))
    }
    seen: Counter[str] = Counter()
    rows: list[Row] = []
    for row in sorted(taubench_rows(), key=lambda row: (row.end_ns, row.run_id)):
        task = str(row.task)
        text = texts[task.rpartition("-")[2], seen[task]]
        seen[task] += 1
        rows.append(replace(row, request=sketch_of(text)))
    numbers = groups_of([row.request for row in rows if row.request is not None])
    groups: dict[int, list[Row]] = {}
    for row, number in zip(rows, numbers, strict=True):
        groups.setdefault(number, []).append(replace(row, task=f"group {number}"))
    return spearman([_apart(group) for group in groups.values() if len(group) >= 2])


def _apart(rows: Sequence[Row]) -> list[tuple[float, bool]]:
    agreement = EffectAgreement()
    for row in rows:
        agreement.add(row)
    value = agreement.value().value
    return [(1 - (1.0 if value is None else value), row.success is False) for row in rows]


def languages() -> Iterator[str]:
    """Yield what groups are made of the same four kinds of request in three languages."""
    yield "| language | groups of the four kinds | requests in a group of two or more | pure |"
    yield "|---|---|---|---|"
    for name, kinds in OTHERS.items():
        texts = [(kind, text) for kind, several in enumerate(kinds) for text in several]
        sketches = [sketch or b"" for _, text in texts if (sketch := sketch_of(text)) is not None]
        numbers = groups_of(sketches)
        members: dict[int, list[int]] = {}
        for number, (kind, _) in zip(numbers, texts, strict=True):
            members.setdefault(number, []).append(kind)
        shared_by = [kinds for kinds in members.values() if len(kinds) > 1]
        grouped = sum(map(len, shared_by))
        pure = sum(max(Counter(kinds).values()) for kinds in shared_by)
        yield f"| {name} | {len(members)} | {grouped} of {len(texts)} | {pure} of {grouped} |"


def work() -> Iterator[str]:
    """Yield how change detection behaves while the work moves, and how it notes that it does."""
    yield "| stream | measured | requests known | unknown |"
    yield "|---|---|---|---|"
    kinds = {"random order": steady, "a mix that swings every 100": swinging(100)}
    kinds["a mix that swings every 1,000"] = swinging(1_000)
    for name, kind in kinds.items():
        cells = [f"{fmean(_alarms(kind, 200, known=known)):.0f}" for known in (True, False)]
        yield f"| {name} | observations to a false alarm, c = 200 | {' | '.join(cells)} |"
    cells = [
        f"{fmean(_alarms(steady, 10_000, known=known, shift=200)) - 200:.0f}"
        for known in (True, False)
    ]
    yield f"| all kinds of work change at 200 | delay, c = 10,000 | {' | '.join(cells)} |"
    for kind, words in ((NEW_REQUESTS, "a new kind of request"), (MIX, "another mix")):
        found = [notes(seed, steady, 1_000, 200) for seed in range(2 * SEEDS)]
        number = sum(one.kind == kind for each in found for one in each)
        rate = f"one in {2 * SEEDS * 1_000 / max(number, 1):,.0f} observations"
        yield f"| random order | false notes of {words}, c = 200 | {rate} | – |"
    found = [notes(seed, new_from(300), 600, 10_000) for seed in range(2 * SEEDS)]
    new = sum(any(one.kind == NEW_REQUESTS for one in each) for each in found)
    either = sum(map(bool, found))
    yield (
        f"| a new kind, a sixth of the requests from 300 on | noted within 300, c = 10,000 | as new "
        f"{new}, at all {either} of {2 * SEEDS} | – |"
    )
    narrow = [
        notes(seed, lambda drawn, at: drawn.randrange(3 if at > 300 else 20), 500, 10_000)
        for seed in range(2 * SEEDS)
    ]
    mixed = sum(any(one.kind == MIX for one in each) for each in narrow)
    yield (
        f"| three of twenty kinds remain from 300 on | noted as another mix within 200 | "
        f"{mixed} of {2 * SEEDS} | – |"
    )


def _alarms(kind: Any, c: float, *, known: bool, shift: int = 0) -> list[int]:
    found: list[int] = []
    for seed in range(2 * SEEDS):
        stream = observations(seed, kind, RUNS if not shift else 400, shift=shift)
        if not known:
            stream = [replace(one, request=None) for one in stream]
        found.append(alarm_at(stream, c))
    return found


def page() -> str:
    """Return the part of the page."""
    parts = (HEAD, *scores(), "", FOUND.format(failing_groups()), *languages(), "", WORK, *work())
    return "\n".join(parts) + "\n"


HEAD: Final = """
## Groups of alike requests

Runs without a task id are compared with those whose requests are alike. Streams of 100 runs over twenty intents (half of those of
CLINC150 and of Banking77), each request another person's sentence; the score of an agent that takes the same path for each intent, of one
that replaces a step in 30 % of its runs, and of one that draws its tools at random. Means of ten streams.
"""
FOUND: Final = """Which kinds of request go wrong: on tau-bench airline (gpt-4o, 200 runs, the user's first message, no ids) the effect distance of a
group goes with its failures, Spearman {:.2f}.

Other languages: the table of word pieces knows English. Texts in others are compared by their letters, so requests are alike only where
they share words; kinds are split rather than joined. Four kinds, three sentences each:
"""
WORK: Final = """### Change of work apart from change of the agent

An observation is ranked among earlier ones with alike requests. Streams of twenty intents of CLINC150 whose numbers differ; c is
`change.runs_per_false_alarm`. Streams end at 500 observations, so that means beyond 300 are lower bounds.
"""
