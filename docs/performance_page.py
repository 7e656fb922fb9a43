"""The page of costs, from what `make bench` and `python -m benchmarks.over_time` wrote down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

BENCHMARKS: Final = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS: Final = BENCHMARKS / "results.json"
OVER_TIME: Final = BENCHMARKS / "over_time.json"

ABOUT: Final = """# Performance

What watching costs, beside what the same work costs others, and what a deployment needs. `make bench` measures it all and
fails where a row is over its limit; `make docs` writes this page from `benchmarks/results.json`.
"""

HOW: Final = """## How it was measured

- Rows in `×` are ratios. The works that are compared run in turns in one process, or as processes that get the same requests
  in turns; each round gives one ratio, and a row is the middle of at least seven. *Middle half* is where the middle half of the
  rounds lies. Time is CPU time, of all threads.
- Absolute times wander by a third and more with what else the machine does: take them as an order of size. Ratios of one run do
  not wander with it.
- Spans are those of agents as OpenTelemetry's instrumentations send them (an invocation, model calls of 13 attributes, tool calls
  of 9; 512 a request, no two requests alike), with habitual paths or, where a row says chaotic, nearly always new ones.
- Rows by the compiled reader are of a service that has it (`pip install ./native`, [what it is](../native/README.md)); rows in
  Python of one that has not. Both say the same numbers. What else is compiled is in all rows where it is installed.
- The bare `ParseFromString` is protobuf's own C parser on the full schema of OTLP, which does nothing with what it parsed.
- The Collector is a real one. It makes metrics of spans, which needs none of the state that runs and windows need, and is
  compiled; the service also joins spans to runs, keeps windows and looks for changes. Both are processes of their own, and count
  with everything that they began.
- Peers are installed by the benchmark in environments of their own. Where one cannot be had, its row is left out.
- Each row is a function in `benchmarks/`, beside the naive way to do the same that it is compared with.
"""

_DUE: Final = (
    " In it is what falls due in the old one alone: with these settings runs settle after a minute, ids are forgotten after a"
    " quarter of an hour, and sessions close after half an hour."
)
_IDS: Final = " In it is what falls due in the old one alone: ids are forgotten after a quarter of an hour."
NOTHING: Final = "\nNothing is written down yet: `make bench` does it.\n"

Found: TypeAlias = Mapping[str, Any]


def page() -> str:
    """The page."""
    return told(_read(RESULTS), _read(OVER_TIME))


def told(results: Found | None, over_time: Found | None) -> str:
    """The page about these. None: that was not measured yet."""
    parts = [ABOUT, NOTHING if results is None else _costs(results), HOW]
    parts += [] if over_time is None else [_time(over_time)]
    parts += [] if results is None else [_sizes(results)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _read(path: Path) -> Found | None:
    found: Found | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return found


def _costs(results: Found) -> str:
    rows: Sequence[Found] = results["rows"]
    held, free = ([row for row in rows if (row["at_most"] is None) is plain] for plain in (False, True))
    sections = (
        f"{_machine(results)}\n",
        "## What is held to a limit\n",
        _over(held),
        *_table(held, limits=True),
        "\n## What is measured beside\n",
        *_table(free, limits=False),
    )
    return "\n".join(sections)


def _machine(results: Found) -> str:
    machine, versions = results["machine"], results["versions"]
    with_them = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"Measured on {machine['cores']} cores of an {machine['cpu']}, {machine['system']}; {with_them}."


def _over(rows: Sequence[Found]) -> str:
    """Which rows are over their limit, and by how much."""
    over = [row for row in rows if row["value"] > row["at_most"]]
    if not over:
        return f"All {len(rows)} rows are within their limits.\n"
    verb = "is" if len(over) == 1 else "are"
    lines = [f"- {row['name']}: {_value(row)}, at most {_number(row['at_most'])}, {_beyond(row)}" for row in over]
    return f"{len(over)} of {len(rows)} rows {verb} over the limit:\n\n" + "\n".join(lines) + "\n"


def _beyond(row: Found) -> str:
    share = row["value"] / row["at_most"]
    return f"that is {share:.1f} times the limit" if share >= 2 else f"that is {share - 1:.0%} too much"


def _table(rows: Sequence[Found], *, limits: bool) -> Iterator[str]:
    yield "| what | against, or on what | found | middle half |" + (" at most |" if limits else "")
    yield "|---|---|---|---|" + ("---|" if limits else "")
    for row in rows:
        low, high = (_number(one) for one in row["spread"])
        line = f"| {row['name']} | {row['against']} | {_value(row)} | {low if low == high else f'{low} to {high}'} |"
        yield line + (f" {_number(row['at_most'])} |" if limits else "")


def _time(found: Found) -> str:
    parts = (
        "## Over time\n",
        _fed(found),
        _cost(found),
        _memory(found["memory"]),
        _garbage(found["garbage"]),
    )
    return "\n".join(parts)


def _fed(found: Found) -> str:
    settings = f", with {', '.join(f'`{one}`' for one in found['settings'])}" if found["settings"] else ""
    machine = found["machine"]
    return (
        f"One service got {_round(found['spans'])} spans in {found['minutes']:g} minutes{settings} ({found['date']}, "
        f"{machine['cores']} cores of an {machine['cpu']}). `python -m benchmarks.over_time` does it, and "
        "`python -m benchmarks.over_time 10000000 60` in an hour. It is measured seldom: this is "
        "of the service as it was that day, the rows above may be of a later one.\n"
    )


def _cost(found: Found) -> str:
    cost, young = found["cost"], found.get("young")
    low, high = (_number(one) for one in cost["spread"])
    if young is None:
        other, due = "that has seen 100 000", "" if found["settings"] else _DUE
    else:
        other = (
            f"that is {young['minutes']:g} minutes old and has seen {_round(young['spans'])}: one that closes runs, settles them "
            "and closes sessions as fast as they come, as the old one does"
        )
        due = "" if any(one.startswith("assembly.") for one in found["settings"]) else _IDS
    return (
        f"- **A span** costs it then {_number(cost['ratio'])} times what it costs a service {other}, on the same "
        f"requests in turns (middle half {low} to {high}, at most {_number(cost['at_most'])}).{due}"
    )


def _memory(memory: Found) -> str:
    looks = memory["looks"]
    told = ", ".join(
        f"{_mb(size)} after {_round(spans)} spans" for _, spans, size in (looks[0], looks[len(looks) // 2], looks[-1])
    )
    return (
        f"- **Memory**: {told}. The last quarter lies {memory['growth']:+.1%} beside the third "
        f"(at most {memory['at_most']:+.0%})."
    )


def _garbage(garbage: Found) -> str:
    young, middle, old = garbage["collections"]
    return (
        f"- **Looks for garbage**: {young} at young objects, {middle} at those that outlived one, {old} at all, which took "
        f"{garbage['work_s']:.1f} s of CPU time together. {garbage['long'] or 'None'} kept all threads waiting for more than "
        f"50 ms{_why(garbage)}"
    )


def _why(garbage: Found) -> str:
    longest, most = garbage["longest"], garbage["most_work"]
    if longest is None:
        return "."
    told = f", the longest for {longest['pause_s'] * 1e3:.0f} ms"
    waited = f"In {garbage['long'] - garbage['worked']} of these less than 50 ms were work: the machine gave the process no time."
    if most is None:
        return f"{told}. {waited}"
    blocks = f"{most['blocks']:,}".replace(",", " ")
    return (
        f"{told}. {waited} The others worked, up to {most['work_s'] * 1e3:.0f} ms, with {blocks} blocks of memory in "
        "use: such a look costs what there is to look at; under full load those are the spans of requests and of open runs."
    )


def _sizes(results: Found) -> str:
    """What a deployment needs, by what was measured."""
    rows = {row["name"]: row for row in results["rows"]}
    told = (line.format(**_quantities(rows[name])) for name, line in SIZES.items() if name in rows)
    return "\n".join(("## How to size a deployment\n", SIZING, *told, REST))


SIZING: Final = "A service is one process and uses one core, and a little of a second. By the numbers above:\n"
SIZES: Final = {
    "the service, a span": (
        "- **Throughput**: {value} µs a span from end to end, without a journal: {rate} spans a second and core."
    ),
    "the service with its journal, a span": "- **With a state directory** (`--state`) a span costs {value} times that.",
    "memory an open run of 20 spans": (
        "- **An open run** of 20 spans takes {value} KiB, 10 000 at a time {many} MiB. A run is open from its first span until "
        "`assembly.linger`\n  after its root ended; what can be reopened is kept `assembly.reopen` longer."
    ),
    "memory an agent, stable paths": (
        "- **An agent** with a full window of 100 runs takes {value} KiB where its runs take habitual paths, 10 000 {many} MiB."
    ),
    "memory an agent, chaotic paths": (
        "- **An agent** whose runs nearly always take a new path takes {value} KiB, 10 000 of them {many} MiB."
    ),
    "memory an agent's change detector": "- **Change detection** adds up to {value} KiB an agent (`change.enabled`).",
    "memory an open session": "- **An open session** of five runs takes {value} KiB until `sessions.idle` after its last run.",
    "restart: until ready": "- **A restart** on {against} takes requests after {value} {unit}.",
}
REST: Final = """\
- **Ceilings** of all of these are settings (`limits`, `assembly`; [settings](configuration.md)), each with a gauge of how full
  it is and a counter of what found no place.
- **Past one core**: whole services to each of several processes ([deployment](deployment.md)), or workers on Kafka
  ([scale](scale.md)). Leave half of a core free: bursts wait in the queue, and a restart works off what came meanwhile."""


def _quantities(row: Found) -> dict[str, str]:
    """What a line may tell of a row: the rate that microseconds make, the mebibytes of ten thousand times its kibibytes."""
    value = row["value"]
    told = {"value": _number(value), "rate": _round(1e6 / value, 2), "many": _round(value * 10_000 / 1024)}
    return {**told, "against": row["against"], "unit": row["unit"]}


def _value(row: Found) -> str:
    return f"{_number(row['value'])} {row['unit']}"


def _number(value: float) -> str:
    """Three digits.

    >>> _number(0.0048), _number(1.2345), _number(123456)
    ('0.0048', '1.23', '123 456')
    """
    return f"{value:,.0f}".replace(",", " ") if value >= 1_000 else f"{value:.3g}"


def _round(number: float, digits: int = 3) -> str:
    return f"{float(f'{number:.{digits}g}'):,.0f}".replace(",", " ")


def _mb(size: float) -> str:
    return f"{size / 1e6:.0f} MB"
