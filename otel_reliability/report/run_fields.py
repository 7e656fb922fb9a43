"""The fields of a run that people and programs are shown: one table.

`otel-reliability runs`, the API and its CSV show the value of every row, the page of a run those
that have a title, and a line in a list of runs those that have a brief text. The reference page of
fields and the API's schema are made from it too. To show another field everywhere, add a row
(docs/contributing/add-a-field.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import FINGERPRINTS, Compression, Outcome, Run
from otel_reliability.report.text import clean, count, dollars, instant, percent, seconds

FACTS_OF_CALLS: Final = ("name", "ok", "retry", "repeat", "agent")
BRIEF_NAME: Final = 40
"""Characters of a name in a list of runs."""

Shown: TypeAlias = Callable[[Run], str]
"""Returns the text for a run; empty where there is nothing to show."""


def _nothing(_: Run) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class RunField:
    """A field as it is shown. `value` is the JSON value, null where it is not known; `about`
    describes it, in Markdown, and `unit` is what a number counts.

    `text` is what the page of a run shows under `title`, `brief` what a list of runs shows.
    `style` is the CSS class in a list; `{}` in it stands for the value. An `optional` field is left
    out of JSON where it has no value.
    """

    name: str
    value: Callable[[Run], Any]
    about: str
    unit: str = ""
    title: str = ""
    text: Shown = _nothing
    brief: Shown = _nothing
    style: str = ""
    optional: bool = False


class TitledFact(NamedTuple):
    """A fact on the page of a run."""

    title: str
    text: str


class BriefFact(NamedTuple):
    """A fact in a list of runs, with its CSS class, which may be empty."""

    style: str
    text: str


def record_of(run: Run) -> dict[str, Any]:
    """Return every field of a run as a JSON value, by name: hexadecimal ids, RFC 3339 times in UTC,
    null for what is not known. No argument, no text.
    """
    found = {field.name: field.value(run) for field in RUN_FIELDS}
    for field in RUN_FIELDS:
        if field.optional and not found[field.name]:
            del found[field.name]
    return found


def facts_of(run: Run) -> list[TitledFact]:
    """Return the facts on the page of a run.

    >>> from otel_reliability.testing import run
    >>> facts_of(run(["search"], task_id="refund"))[-1]
    TitledFact(title='Task', text='refund')
    """
    found = [TitledFact(field.title, field.text(run)) for field in RUN_FIELDS]
    return [fact for fact in found if fact.text]


def brief_of(run: Run) -> list[BriefFact]:
    """Return the facts of a run in a list of runs."""
    found = [
        BriefFact(field.style.format(field.value(run)), field.brief(run)) for field in RUN_FIELDS
    ]
    return [fact for fact in found if fact.text]


def tokens(given: int | None, returned: int | None) -> str:
    """Return the tokens of a call or a run; empty where none are known.

    >>> tokens(1200, None), tokens(None, None)
    ('1,200 in', '')
    """
    parts = [
        f"{number:,} {word}"
        for number, word in ((given, "in"), (returned, "out"))
        if number is not None
    ]
    return ", ".join(parts)


def made_of(run: Run) -> list[str]:
    """Return what the telemetry shows of how the agent was made: its version, then `model …`,
    `prompt …` and so on.
    """
    found = [value if kind == "version" else f"{kind} {value}" for kind, value in run.fingerprints]
    return sorted(
        found, key=lambda name: name.startswith(tuple(f"{kind} " for kind in FINGERPRINTS))
    )


# --- Values and texts -----------------------------------------------------------------------------


def _fingerprints(run: Run) -> dict[str, list[str]]:
    return {
        kind: [value for of, value in run.fingerprints if of == kind]
        for kind, _ in run.fingerprints
    }


def _tool_calls(run: Run) -> list[dict[str, Any]] | None:
    if run.tool_calls is None:
        return None
    return [{name: getattr(call, name) for name in FACTS_OF_CALLS} for call in run.tool_calls]


def _compression(one: Compression) -> dict[str, Any]:
    return {
        "time": instant(one.end_ns),
        "ok": one.ok,
        "tokens_before": one.tokens_before,
        "tokens_after": one.tokens_after,
        "trigger": one.trigger,
        "agent": one.agent,
    }


def _outcome(run: Run) -> str:
    return "" if run.outcome is Outcome.UNKNOWN else run.outcome.value


def _duration(run: Run) -> str:
    return seconds(run.duration_s)


def _versions(run: Run) -> str:
    found = [clean(value, BRIEF_NAME) for kind, value in run.fingerprints if kind == "version"]
    return "version " + ", ".join(found) if found else ""


def _pressure(run: Run) -> str:
    return "" if run.token_pressure is None else percent(run.token_pressure)


def _whole(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


# --- The table ------------------------------------------------------------------------------------

RUN_FIELDS: Final[tuple[RunField, ...]] = (
    RunField("run_id", lambda run: run.run_id, about="Its id: trace id and span id."),
    RunField("trace_id", lambda run: run.trace_id.hex(), about="The trace of its first span."),
    RunField(
        "root_span_id",
        lambda run: None if run.root_span_id is None else run.root_span_id.hex(),
        about="The span of its invocation; null without one.",
    ),
    RunField(
        "service_namespace",
        lambda run: run.key.service_namespace or None,
        about="`service.namespace` of its agent.",
    ),
    RunField(
        "service", lambda run: run.key.service_name or None, about="`service.name` of its agent."
    ),
    RunField(
        "environment",
        lambda run: run.key.environment or None,
        about="`deployment.environment.name` of its agent.",
    ),
    RunField("agent", lambda run: run.key.agent, about="The name of its agent."),
    RunField(
        "attributes",
        lambda run: dict(run.key.extra),
        about="The attributes that the setting `agent_key` adds to the key of its agent.",
        optional=True,
    ),
    RunField(
        "outcome",
        lambda run: run.outcome.value,
        about="`success`, `failure`, `completed` (without an error, which is no success), "
        "`paused`, "
        "`cancelled` or `unknown`.",
        title="Outcome",
        text=_outcome,
        brief=_outcome,
        style="outcome outcome--{}",
    ),
    RunField(
        "outcome_source",
        lambda run: run.outcome_source,
        about="The rule that decided the outcome.",
    ),
    RunField(
        "ended_in_error",
        lambda run: run.ended_in_error,
        about="True if its root ended in an error, for all outcomes; null where the root never "
        "arrived.",
        title="End",
        text=lambda run: "ended in an error" if run.ended_in_error else "",
    ),
    RunField(
        "start",
        lambda run: instant(run.start_ns),
        about="The start of its first span.",
    ),
    RunField(
        "duration_s",
        lambda run: run.duration_s,
        about="From its first span to its last.",
        unit="s",
        title="Duration",
        text=_duration,
        brief=_duration,
        style="run__duration",
    ),
    RunField(
        "tokens",
        lambda run: {"input": run.input_tokens, "output": run.output_tokens},
        about="`input` and `output` tokens of its model calls.",
        unit="tokens",
        title="Tokens",
        text=lambda run: tokens(run.input_tokens, run.output_tokens),
    ),
    RunField(
        "token_pressure",
        lambda run: run.token_pressure,
        about="Tokens of its fullest model call over the context limit of the model, 0 to 1.",
        unit="ratio",
        title="Context used",
        text=_pressure,
        brief=lambda run: f"{_pressure(run)} full" if _pressure(run) else "",
    ),
    RunField(
        "cost",
        lambda run: run.cost,
        about="The cost of its model calls: reported, else at list prices. Null where one is "
        "unknown.",
        unit="USD",
        title="Cost",
        text=lambda run: "" if run.cost is None else dollars(run.cost),
    ),
    RunField(
        "path",
        lambda run: None if run.path is None else list(run.path),
        about="The names of its tools in order, hand-offs as `→agent`; null where tools are "
        "unobservable.",
    ),
    RunField(
        "tools",
        lambda run: run.tools.value,
        about="The source of its tool calls: `observed` (spans), `messages` of models, or "
        "`unobservable`.",
    ),
    RunField(
        "tool_calls",
        _tool_calls,
        about="Its tool calls in the order of the clock: name, success, `retry` (of a failed "
        "call), "
        "`repeat` (of one that succeeded), and the agent that made it.",
        title="Tool calls",
        text=lambda run: "" if run.tool_calls is None else f"{len(run.tool_calls):,}",
    ),
    RunField(
        "retries",
        lambda run: run.retries,
        about="Tool calls that were retries.",
        unit="calls",
        title="Retries",
        text=lambda run: _whole(run.retries),
        brief=lambda run: count(run.retries, "retry") if run.retries else "",
    ),
    RunField(
        "longest_retry_chain",
        lambda run: run.longest_retry_chain,
        about="The most retries of one call.",
        unit="calls",
    ),
    RunField(
        "model_calls",
        lambda run: len(run.model_calls),
        about="Its model calls.",
        unit="calls",
        title="Model calls",
        text=lambda run: _whole(len(run.model_calls)),
    ),
    RunField(
        "compressions",
        lambda run: [_compression(one) for one in run.compressions],
        about="The compressions of its context: end, success, tokens before and after, "
        "trigger, agent.",
    ),
    RunField(
        "task_id",
        lambda run: run.task_id,
        about="The task of which it is an attempt.",
        title="Task",
        text=lambda run: clean(run.task_id or ""),
        brief=lambda run: f"task {clean(run.task_id, BRIEF_NAME)}" if run.task_id else "",
        style="run__task",
    ),
    RunField(
        "trial",
        lambda run: run.trial,
        about="The number of the attempt.",
    ),
    RunField(
        "session_id",
        lambda run: run.session_id,
        about="Its session: the runs of one conversation.",
        title="Session",
        text=lambda run: clean(run.session_id or ""),
    ),
    RunField(
        "resumes",
        lambda run: run.resumes,
        about="The id of the run of its conversation that waited for a person, and that it goes on "
        "with: both are one task.",
        title="Resumes",
        text=lambda run: run.resumes or "",
        brief=lambda run: "goes on with a paused run" if run.resumes else "",
        optional=True,
    ),
    RunField(
        "fingerprints",
        _fingerprints,
        about="The making of the agent, by kind: `model`, `reasoning`, `version`, `prompt`, "
        "`tools`, `framework`.",
        title="Made of",
        text=lambda run: ", ".join(clean(name) for name in made_of(run)),
        brief=_versions,
    ),
    RunField(
        "condition",
        lambda run: run.condition,
        about="`baseline`, or the disturbance under which it was made.",
        title="Condition",
        text=lambda run: "" if run.condition == BASELINE else clean(run.condition),
    ),
    RunField(
        "nested",
        lambda run: run.nested,
        about="True if another run encloses it.",
    ),
    RunField(
        "implicit",
        lambda run: run.implicit,
        about="True if it has no invocation: work below a parent that never came.",
    ),
    RunField(
        "incomplete",
        lambda run: run.incomplete,
        about="True if its root never arrived.",
    ),
    RunField(
        "closed_by",
        lambda run: run.closed_by.value,
        about="The reason for which it was closed.",
    ),
)
"""Every field, in reading order."""
