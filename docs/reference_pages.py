"""The reference pages of the command line, the Python API, the fields of a run and the Prometheus
names, from what they describe.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

import click

import otel_reliability
from otel_reliability import dashboards, metrics
from otel_reliability.cli.app import ABOUT, app
from otel_reliability.model.reading import MetricSpec
from otel_reliability.report.run_fields import RUN_FIELDS
from otel_reliability.telemetry import names
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.prometheus import family_of

WIDTH: Final = 100

CLI: Final = """# Command line

`otel-reliability COMMAND --help` prints the same. Exit codes: 0 success, 1 a failed target (`gate`), 2 bad usage, invalid
settings, an input that cannot be opened, or one in which there is nothing to read, 3 not enough data. `--format json` is for programs: its fields are stable
([upgrading](../guides/upgrading.md)).
"""

PYTHON: Final = """# Python API

`otel_reliability.__all__`, the pytest fixture and the builders for tests are public; every other module may change.
"""

PYTEST: Final = """## `reliability` (pytest fixture)

Installed with the package. It records the agent runs of a test through the global TracerProvider.

```python
def test_support_agent(reliability):
    for _ in range(5):
        support_agent.run("refund order 1234")
    reliability.require("score>=80", "retry_explosion<=0")
```

"""

LEFT_OUT: Final = """## Series that a scrape has with `service.series: all` only

By default `/metrics` has what the shipped dashboards, rules and alerts ask for, and of a histogram whose buckets they do not
ask for only its sum and its count. An OTLP push has all.
"""

PROMETHEUS: Final = """# Prometheus names

Every series that leaves the service, the workers and the span processor. `/metrics`, an OTLP push, and a Collector between give
the same names, types and labels: the translation is OpenTelemetry's own. [Metrics](metrics.md) explains what each number means.

## Labels

Series of agents carry `gen_ai_agent_name` and, where known, `service_namespace`, `service_name` and
`deployment_environment_name`; what `agent_key` adds; and `window` where there are several windows. An agent beyond the limit of
agents appears as `__other__`. Without data there is no series.

```promql
agent_reliability_score{gen_ai_agent_name="support"}
sum by (gen_ai_agent_name) (increase(agent_reliability_retry_explosions_total[1d]))
agent_reliability_score and on (service_name, gen_ai_agent_name) (agent_reliability_window_runs >= 20)
```

## Gauges of windows

One value per agent and window.

| series | meaning | OTel name | unit |
|---|---|---|---|
"""


def cli() -> str:
    """Return the page of all commands, with their help."""
    parent = click.Context(
        app, info_name="otel-reliability", terminal_width=WIDTH, help_option_names=["-h", "--help"]
    )
    return f"{CLI}\n{_block(ABOUT)}\n" + "\n".join(_commands(app, parent, "##"))


def _commands(group: click.Group, parent: click.Context, level: str) -> Iterator[str]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is None:
            continue
        command._help_option = None  # noqa: SLF001  click keeps the help option of the first context, which may be a test's
        context = click.Context(command, parent=parent, info_name=name, terminal_width=WIDTH)
        yield (
            f"{level} "
            f"`{context.command_path.removeprefix('otel-reliability ')}`\n\n{_block(command.get_help(context))}"
        )
        if isinstance(command, click.Group):
            yield from _commands(command, context, f"{level}#")


def _block(text: str) -> str:
    lines = (line.rstrip() for line in text.replace("\b\n", "").strip().splitlines())
    return "```text\n" + "\n".join(lines) + "\n```\n"


def python_api() -> str:
    """Return the page of the public names, with signatures and docstrings."""
    from otel_reliability.report.agent_runs import AgentRuns  # noqa: PLC0415  the fixture's value

    public = (_object(name, getattr(otel_reliability, name)) for name in otel_reliability.__all__)
    require = _object("require", AgentRuns.require, "###")
    others = (
        "`runs` are the runs of the test, `report` is the report on them, `measure(agent)` "
        "returns all numbers.\n"
    )
    return f"{PYTHON}\n" + "\n".join(public) + f"\n{PYTEST}{others}\n{require}\n{TESTING}"


TESTING: Final = """## `otel_reliability.testing`

Builders of spans and runs for tests, with small numbers for ids and seconds for times: `agent`, `model`, `tool`, `handoff`,
`span`, `run`, `call`, `FakeClock`, `write_otlp`. Each has a default for everything that a test does not care about.
"""


def _object(name: str, found: Any, level: str = "##") -> str:
    """Return a section: the signature, then the docstring."""
    doc = inspect.getdoc(found) or ""
    signature = (
        "" if isinstance(found, type) and issubclass(found, Exception) else _signature(name, found)
    )
    return f"{level} `{name}`\n\n{signature}{_prose(doc)}\n"


def _signature(name: str, found: Any) -> str:
    if name == "Settings":
        return "`Settings.load(file, environment, **code)` merges all sources.\n\n"
    parameters = str(inspect.signature(found)).replace("'", "").replace(" -> None", "")
    parameters = re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", parameters).replace("(self, ", "(")
    if len(parameters) > WIDTH:
        parameters = "(\n    " + ",\n    ".join(parameters[1:-1].split(", ")) + ",\n)"
    return f"```text\n{name}{parameters}\n```\n\n"


def _prose(doc: str) -> str:
    """Return a docstring as Markdown: arguments as a list, examples as code, indented
    text as code.
    """
    found: list[str] = []
    arguments = example = False
    for line in doc.splitlines():
        if example and not line.strip():
            found += ["", "```"]
            example = False
        item = re.match(r"    (\w+|\*\*\w+): (.*)", line) if arguments else None
        if line in {"Args:", "Arguments:"}:
            arguments = True
            found.append("")
        elif item:
            found.append(f"- `{item[1]}`: {item[2]}")
        elif line.startswith(">>> "):
            found += [] if example else ["", "```text"]
            found.append(line)
            arguments = False
            example = True
        else:
            found.append(line.replace("        ", "  ") if arguments else line)
    return (
        re.sub(r"\n{3,}", "\n\n", "\n".join([*found, "", "```"] if example else found)).strip()
        + "\n"
    )


RUNS: Final = """# Fields of a run

The fields of a run as `otel-reliability runs`, the [HTTP API](http-api.md) and its CSV show them, in this order. A value that is not
known is null. [How runs are rebuilt](../explanation/runs.md) gives the rules behind them. There is no argument, no result and no
message among them.

| field | meaning | unit |
|---|---|---|
"""


def run_fields() -> str:
    """Return the page of the fields of a run, from the table that shows them."""
    return RUNS + "".join(
        f"| `{field.name}` | {field.about}{' Only where there are any.' if field.optional else ''} "
        f"| {field.unit} |\n"
        for field in RUN_FIELDS
    )


def prometheus() -> str:
    """Return the page of all series: the gauges of windows, then the instruments by group."""
    gauges = "".join(_gauge(spec) for spec in metrics.ALL_SPECS.values() if spec.emitted)
    return "\n".join((PROMETHEUS + gauges, *_instruments(), _left_out()))


def _left_out() -> str:
    """Return the section on the series that are scraped with `service.series: all` only."""
    asked = {re.sub("_(?:bucket|sum|count)$", "", name) for name in dashboards.samples()}
    specs = (*names.gauges(), *names.COUNTERS, *names.HISTOGRAMS)
    found = sorted(series for spec in specs if (series := _series(spec)) not in asked)
    listed = "".join(f"- `{series}`\n" for series in found)
    return f"{LEFT_OUT}\n{listed}"


def _gauge(spec: MetricSpec) -> str:
    series = family_of(Instrument(names.PREFIX + spec.name, "gauge", spec.unit, ""))
    meaning = f"[{spec.title}](metrics.md#{_slug(spec.name, spec.title)})"
    return f"| `{series}` | {meaning} | `{names.PREFIX}{spec.name}` | `{spec.unit}` |\n"


def _slug(name: str, title: str) -> str:
    """Return the anchor of a metric's section in the page of metrics."""
    return re.sub(r"[^\w\- ]", "", f"{name} {title}".lower()).replace(" ", "-")


def _instruments() -> Iterator[str]:
    yield _table(
        "Other gauges of agents",
        (names.LAST_RUN, names.CHANGE_EVIDENCE, names.INFO, names.OPEN_RUN_USAGE),
    )
    yield _table(
        "Counters and histograms of runs and sessions", (*names.COUNTERS, *names.HISTOGRAMS)
    )
    yield _table(
        "Metrics of the semantic conventions, with `telemetry.standard_metrics`", names.STANDARD
    )
    yield _table("Telemetry of otel-reliability itself", names.SELF)
    yield _table("Telemetry of the service", names.SERVICE)
    yield _table("Telemetry of workers on Kafka", names.KAFKA)


def _table(title: str, specs: tuple[Instrument, ...]) -> str:
    rows = "".join(
        f"| `{_series(spec)}` | {spec.kind} | "
        f"{', '.join(f'`{_label(name)}`' for name in spec.attributes)} "
        f"| {spec.description} | `{spec.name}` | `{spec.unit}` |\n"
        for spec in specs
    )
    return (
        f"## {title}\n\n| series | type | labels | meaning | OTel name | unit "
        f"|\n|---|---|---|---|---|---|\n{rows}"
    )


def _series(spec: Instrument) -> str:
    return family_of(spec) + ("_total" if spec.kind == "counter" else "")


def _label(name: str) -> str:
    return name.replace(".", "_")
