"""Options that commands share: those that read recordings (which files, runs, settings), and those
that run a service.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce, wraps
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import click

from otel_reliability.cli.local import local_sessions
from otel_reliability.config import Settings, WindowSettings
from otel_reliability.demo import FILE as DEMO_FILE
from otel_reliability.errors import ConfigurationError, SourceError
from otel_reliability.loading import load, seconds_of
from otel_reliability.model.span import Evaluation
from otel_reliability.recording import REPORT_SETTINGS, for_report
from otel_reliability.service.config_file import load_config, read_file
from otel_reliability.sources.outcome_file import read_outcomes

R = TypeVar("R")
Option: TypeAlias = Callable[[Any], Any]

MAX_NAMED: Final = 2
"""Files that a command line for the user to copy names."""
SECOND: Final = 1_000_000_000
EXAMPLE: Final = "limits.memory=1GiB"

CONFIG: Final[Option] = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings from a .yaml, .toml or .json file (docs/reference/settings.md).",
)


def set_option(example: str) -> Option:
    """Return the option `--set`, handed to the command as `assignments`."""
    help_ = f"One setting, like {example}; repeatable."
    return click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help=help_)


def baseline_option(help_: str) -> Option:
    """Return the option `--baseline`, handed to the command as `baseline`: the files of an earlier
    recording.
    """
    return click.option("--baseline", "--before", multiple=True, metavar="OLD", help=help_)


def form(*names: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return the option `--format`, handed to the command as `form`; the first format is the
    default.
    """
    return click.option(
        "--format",
        "form",
        type=click.Choice(names),
        default=names[0],
        show_default=True,
        help="Output format.",
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The recordings, agents and runs that the user chose, the settings, and outcomes of runs that
    became known later. `source` is how the command line names the recordings.
    """

    files: tuple[str, ...]
    agents: tuple[str, ...]
    since_ns: int
    settings: Settings
    quiet: bool
    outcomes: Sequence[Evaluation] = ()
    source: str = "FILE"


def of_recordings(command: Callable[..., R], *, required: bool = True) -> Callable[..., R]:
    """Add the options for what to read and how to count, handed to the command as `choice`.
    `required`: whether a file must be named, or `--local` given.
    """

    @wraps(command)  # with its help, and the options declared so far
    def chosen(
        files: tuple[str, ...],
        agent: tuple[str, ...],
        since: str | None,
        window: str | None,
        min_runs: int | None,
        config: Path | None,
        assignments: tuple[str, ...],
        quiet: bool,
        outcomes: str | None,
        local: bool = False,
        **rest: Any,
    ) -> R:
        _refuse_missing_demo(files)
        source = _source(files, local=local)
        if local:
            files += local_sessions()
        elif required and not files:
            raise click.MissingParameter(param_type="argument", param_hint="'FILE...'")
        settings = settings_of(config, assignments, window, min_runs)
        now_ns = time.time_ns()
        reported = [] if outcomes is None else read_outcomes(outcomes, now_ns)
        choice = Choice(files, agent, since_ns(since, now_ns), settings, quiet, reported, source)
        return command(choice=choice, **rest)

    files_argument = click.argument("files", nargs=-1, metavar="FILE...")
    local_option = (_LOCAL,) if required else ()
    return _with((files_argument, *_OPTIONS, *local_option), chosen)


def _refuse_missing_demo(files: Sequence[str]) -> None:
    """Say how to make the demo's file, which commands of the documentation read."""
    for file in files:
        if Path(file).name == DEMO_FILE and not Path(file).exists():
            raise SourceError(
                f"{file} does not exist yet: the demo writes it; run otel-reliability demo --once "
                "in the same folder."
            )


def _source(files: Sequence[str], *, local: bool) -> str:
    """Return how a command line names these recordings; of many files, that there are some.

    >>> _source(["my spans.jsonl"], local=False), _source([], local=True)
    ("'my spans.jsonl'", '--local')
    """
    named = shlex.join(files) if len(files) <= MAX_NAMED else "FILE..."
    return " ".join(filter(None, (named, "--local" if local else "")))


def _with(options: Sequence[Option], command: Callable[..., R]) -> Callable[..., R]:
    return reduce(lambda found, option: option(found), reversed(options), command)


_OPTIONS: Final[Sequence[Option]] = (
    click.option(
        "--agent",
        multiple=True,
        metavar="NAME",
        help="Only this agent (or pattern, like 'support*'); repeatable.",
    ),
    click.option(
        "--since",
        metavar="TIME",
        help=(
            "Only runs that ended since: 2026-01-31, 2026-01-31T10:00Z, or a duration ago, like 2h."
        ),
    ),
    click.option(
        "--window",
        metavar="N|TIME",
        help="The last N runs, or those of the last period (24h), of each agent; default: all.",
    ),
    click.option(
        "--min-runs",
        type=click.IntRange(1),
        metavar="N",
        help="Runs that a score needs; default: 2.",
    ),
    click.option(
        "--outcomes",
        metavar="CSV",
        help=(
            "Outcomes that became known later: success, and trace_id, run_id, session_id or key of "
            "the runs."
        ),
    ),
    CONFIG,
    set_option("outcome.fallback=status"),
    click.option("--quiet", "-q", is_flag=True, help="No progress bar."),
)


_LOCAL: Final[Option] = click.option(
    "--local", is_flag=True, help="The sessions of all known coding agents on this machine."
)


METRICS: Final[Option] = click.option(
    "--metrics", metavar="HOST:PORT", help="Address of /metrics for Prometheus; off disables it."
)
_COMMON: Final[tuple[Option, ...]] = (
    CONFIG,
    click.option(
        "--allow-public",
        is_flag=True,
        help="Allow addresses that other machines reach, without TLS and tokens.",
    ),
    set_option(EXAMPLE),
    click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning", "error")),
        default="info",
        show_default=True,
        help="Level of the log on standard error.",
    ),
)


def of_service(
    flags: Mapping[str, str], *options: Option
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add these options and the common ones. The command receives the settings as `config`; `flags`
    names the setting of each option that is one, every other setting has `--set`.
    """
    paths = {**flags, "allow_public": "service.allow_public"}

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def chosen(config: Path | None, assignments: tuple[str, ...], **rest: Any) -> None:
            given = assigned(assignments, EXAMPLE)
            for flag, path in paths.items():
                value = rest.pop(flag)
                if value is not None and value is not False:
                    put(given, path, value)
            command(config=load_config(config, os.environ, given), **rest)

        return _with((*options, *_COMMON), chosen)

    return wrap


def settings_of(
    config: Path | None, assignments: Sequence[str], window: str | None, min_runs: int | None
) -> Settings:
    """Return the settings: those of reports, then the file, the environment, the command line; the
    last one wins.
    """
    wanted = (*assignments, *(() if min_runs is None else (f"metrics.min_runs={min_runs}",)))
    from_file = load(Settings, {} if config is None else read_file(config), base=REPORT_SETTINGS)
    given = assigned(wanted, "metrics.min_runs=10")
    settings = load(Settings, given, base=Settings.from_environment(os.environ, base=from_file))
    return for_report(settings, window_of(window))


def window_of(text: str | None) -> WindowSettings | None:
    """Return the window of a number of runs, or of a period.

    >>> window_of("50").last, window_of("24h").period
    (50, 86400.0)
    """
    if text is None:
        return None
    try:
        return load(WindowSettings, {"last" if text.isdigit() else "period": text})
    except (ValueError, ConfigurationError):
        allowed = "a number of runs from 1, or a duration"
        raise ConfigurationError(
            "--window", text, allowed, "write it like 100, or like 24h"
        ) from None


def since_ns(text: str | None, now_ns: int) -> int:
    """Return a time, or a duration ago, in Unix nanoseconds; 0 where none was given.

    >>> since_ns("2023-11-14T22:13:20Z", 0), since_ns("1s", 3 * SECOND)
    (1700000000000000000, 2000000000)
    """
    if text is None:
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            return now_ns - round(seconds_of(text) * SECOND)
        except (ArithmeticError, ValueError):
            allowed = "a time, or a duration"
            raise ConfigurationError(
                "--since", text, allowed, "write it like 2026-01-31T10:00Z, or like 2h"
            ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * SECOND


def assigned(assignments: Sequence[str], example: str) -> dict[str, Any]:
    """Return the settings of `--set NAME=VALUE` as nested mappings.

    >>> assigned(["service.push=http://box:4317"], "")
    {'service': {'push': 'http://box:4317'}}
    """
    found: dict[str, Any] = {}
    for assignment in assignments:
        path, divided, value = assignment.partition("=")
        if not divided or not path.strip():
            raise ConfigurationError("--set", assignment, "a setting", f"write it like {example}")
        put(found, path.strip(), value)
    return found


def put(settings: dict[str, Any], path: str, value: object) -> None:
    """Put one setting into nested mappings."""
    *parents, name = path.split(".")
    for parent in parents:
        inner: object = settings.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise ConfigurationError(
                "--set", path, "a setting of its own", f"{parent} was set already"
            )
        settings = cast("dict[str, Any]", inner)
    settings[name] = value
