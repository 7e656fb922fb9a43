"""The page of costs, generated from what `make bench` and `python
-m benchmarks.over_time` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

BENCHMARKS: Final = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS: Final = BENCHMARKS / "results.json"
OVER_TIME: Final = BENCHMARKS / "over_time.json"

ABOUT: Final = """# Performance

The cost of the service and of the in-process processor, measured on recorded spans of real agents. `make bench` measures every
row and fails where one is over its limit; `make docs` writes this page from `benchmarks/results.json`.
"""

HOW: Final = """## Method

- A row in `×` is a ratio. What is compared runs in turns, so that other load on the machine hits both; each round gives one
  ratio, and the row is the median of the rounds. *Quartiles* is where the middle half of the rounds lies. Time is CPU time.
- Absolute times vary by a third and more with other load on the machine. Ratios of one run do not.
- *Recorded traffic* repeats captures of some 30 frameworks and instrumentations with fresh ids, 512 spans per request, prompts
  and results included (about 2.5 KB per span). The shapes are written from a seed: one agent with every attribute present, and
  the same with tool arguments and results, without `gen_ai.response.model`, and with one sub-agent per run.
- Captures repeat, and with them their texts, which are read once. With every prompt, argument and result made unique, the whole
  job cost 1.2 to 1.25 times as much in process, with the native extension and without (2026-11-26): real traffic is between.
- Rows of the native extension need it installed; rows in Python are measured in the same run with its import blocked.
- The service runs with its default settings, all endpoints open, but for a linger and a `reopen` of one second: so closing runs
  is inside the measurement. The Collector receives the same requests from the same client and makes metrics of spans with
  `span_metrics`. It keeps no runs and no windows. Each has a turn of its own, from its first request until it is idle.
- The memory of an agent is what 20 agents keep above one with as many runs. Templates of alike spans are left out: all agents
  together have 32 MiB of them at most.
- How Python was compiled matters: Debian's 3.11, compiled with profile-guided optimization, did the whole job in .85 of the time
  of the one that measures here, which is compiled without (three pairs, 2026-11-29).
- A bare `ParseFromString` is protobuf's own C parser on the full schema of OTLP; its result is dropped.
"""

NOTHING: Final = "\nNothing is measured yet: run `make bench`.\n"
SIZES: Final = {
    "service, native extension, per span": (
        "- **Throughput**: {value} µs per span with the native extension: {rate} spans "
        "per second and core."
    ),
    "service, Python, per span": (
        "- **Without the native extension**: {value} µs per span: {rate} spans per second and core."
    ),
    "service with --state, recorded traffic": "- **With a state directory** (`--state`) a span costs {value} times that.",
    "memory per agent, stable paths": (
        "- **An agent** whose runs take habitual paths needs {value} KiB with 100 runs; "
        "10,000 agents need {many} MiB."
    ),
    "memory per agent, chaotic paths": (
        "- **An agent** whose runs nearly always take a new path needs {value} KiB; "
        "10,000 agents need {many} MiB."
    ),
    "memory per agent, requests known and change detection on": (
        "- **An agent by default**, whose requests are in its telemetry, with change detection: "
        "{value} KiB; 10,000 agents need {many} MiB."
    ),
    "memory per open run of 20 spans": (
        "- **An open run** of 20 spans needs {value} KiB; 10,000 need {many} MiB. A run "
        "is open until `assembly.linger`\n"
        "  after its root ended, and can be reopened for `assembly.reopen` longer."
    ),
    "restart: until ready": "- **A restart** with {against} takes {value} {unit}.",
}

Found: TypeAlias = Mapping[str, Any]


def page() -> str:
    """Return the page about the committed results."""
    return written(_read(RESULTS), _read(OVER_TIME))


def written(results: Found | None, over_time: Found | None) -> str:
    """Return the page about these results. None: not measured yet."""
    parts = [ABOUT, NOTHING if results is None else _costs(results), HOW]
    parts += [] if over_time is None else [_over_time(over_time)]
    parts += [] if results is None else [_sizes(results)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _read(path: Path) -> Found | None:
    found: Found | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return found


def _costs(results: Found) -> str:
    rows: Sequence[Found] = results["rows"]
    held = [row for row in rows if row["at_most"] is not None]
    free = [row for row in rows if row["at_most"] is None]
    sections = (
        f"{_machine(results)}\n",
        "## Rows with a limit\n",
        _over(held),
        *_table(held, limits=True),
        "\n## Other rows\n",
        *_table(free, limits=False),
    )
    return "\n".join(sections)


def _machine(results: Found) -> str:
    machine = results["machine"]
    versions = results["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"Measured on {results['date']}: {machine['cores']} cores, {machine['cpu']}, "
        f"{machine['system']}; {packages}."
    )


def _over(rows: Sequence[Found]) -> str:
    """Return which rows are over their limit, and by how much."""
    over = [row for row in rows if row["value"] > row["at_most"]]
    if not over:
        return f"All {len(rows)} rows are within their limits.\n"
    lines = [
        (
            f"- {row['name']}: {_value(row)}, limit {_number(row['at_most'])} "
            f"({row['value'] / row['at_most'] - 1:+.0%})"
        )
        for row in over
    ]
    return f"{len(over)} of {len(rows)} rows over the limit:\n\n" + "\n".join(lines) + "\n"


def _table(rows: Sequence[Found], *, limits: bool) -> Iterator[str]:
    yield "| what | against, or measured on | measured | quartiles |" + (
        " limit |" if limits else ""
    )
    yield "|---|---|---|---|" + ("---|" if limits else "")
    for row in rows:
        low, high = (_number(one) for one in row["spread"])
        line = (
            f"| {row['name']} | {row['against']} | {_value(row)} | "
            f"{low if low == high else f'{low} to {high}'} |"
        )
        yield line + (f" {_number(row['at_most'])} |" if limits else "")


def _over_time(found: Found) -> str:
    cost = found["cost"]
    memory = found["memory"]
    machine = found["machine"]
    low, high = (_number(one) for one in cost["spread"])
    samples = memory["samples"]
    sizes = ", ".join(
        f"{size / 1e6:.0f} MB after {_round(spans)} spans"
        for _, spans, size in (samples[0], samples[len(samples) // 2], samples[-1])
    )
    return f"""## Over time

One service received {_round(found["spans"])} spans in {found["minutes"]:g} minutes ({found["date"]}, {machine["cores"]} cores,
{machine["cpu"]}), with {", ".join(f"`{one}`" for one in found["settings"])}. Measure it with
`python -m benchmarks.over_time`, or over an hour with `python -m benchmarks.over_time 10000000 60`.

- **Cost**: a span then costs {_number(cost["ratio"])} times what it costs a service that has just started to close runs and
  sessions as fast as they arrive (quartiles {low} to {high}, limit {_number(cost["at_most"])}).
- **Memory**: {sizes}. The last quarter of the time is {memory["growth"]:+.1%} above the third (limit {memory["at_most"]:+.0%}).
"""


def _sizes(results: Found) -> str:
    """Return what a deployment needs, by what was measured."""
    rows = {row["name"]: row for row in results["rows"]}
    lines = (line.format(**_quantities(rows[name])) for name, line in SIZES.items() if name in rows)
    return "\n".join(
        ("## Sizing\n", "A service is one process and uses about one core.\n", *lines, REST)
    )


REST: Final = """\
- **Limits** of all of these derive from `limits.memory` ([settings](../reference/settings.md#limits)). Each has a gauge of its
  use and a counter of what was rejected.
- **More than one core**: route whole services to several processes ([deployment](../guides/deployment.md)), or use workers on
  Kafka ([scale](../guides/scale.md))."""


def _quantities(row: Found) -> dict[str, str]:
    """Return what a line may name of a row: the rate of microseconds, the mebibytes of ten thousand
    times its kibibytes.
    """
    value = row["value"]
    many = f"{value * 10_000 / 1024:,.0f}"
    return {
        "value": _number(value),
        "rate": _round(1e6 / value, 2),
        "many": many,
        "against": row["against"],
        "unit": row["unit"],
    }


def _value(row: Found) -> str:
    return f"{_number(row['value'])} {row['unit']}"


def _number(value: float) -> str:
    """Return three digits.

    >>> _number(0.0048), _number(1.2345), _number(123456)
    ('0.0048', '1.23', '123,456')
    """
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _round(number: float, digits: int = 3) -> str:
    return f"{float(f'{number:.{digits}g}'):,.0f}"
