"""The HTTP API of the service as an OpenAPI document, and its page. Tests compare it with the
routes and with real answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from otel_reliability.report.run_fields import RUN_FIELDS

JSON: Final = "application/json"


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _array(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _or_null(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], **more}


def _answer(
    about: str, schema: Mapping[str, Any] | None = None, kind: str = JSON
) -> dict[str, Any]:
    return (
        {"description": about}
        if schema is None
        else {"description": about, "content": {kind: {"schema": schema}}}
    )


def _query(name: str, kind: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": {"type": kind}}


def _path(name: str, about: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": about,
        "schema": {"type": "string"},
    }


_NAMES: Final = (
    _path("service", "`service.name` of the agent, percent-encoded."),
    _path("agent", "Name of the agent, percent-encoded."),
)
_AGENT_LINE: Final = _object(
    service_namespace=_or_null("string"),
    service=_or_null("string"),
    environment=_or_null("string"),
    agent={"type": "string"},
    verdict={
        "type": "string",
        "description": "failing, critical, unstable, variable, stable or undecided.",
    },
    grade=_or_null(
        "string", description="The worse of success and stability, on the scale of tiers."
    ),
    success_rate=_or_null("number", description="0 to 1; null where no outcome is known."),
    error_rate=_or_null("number", description="Share of runs that ended in an error, 0 to 1."),
    cost_per_run=_or_null(
        "number", description="US dollars, over the runs whose cost is known; null without any."
    ),
    runs={"type": "integer", "description": "Runs in the window."},
    score=_or_null("number", description="0 to 100; null without enough data."),
    score_note={
        "type": ["string", "null"],
        "description": "Why there is no score, or what it rests on.",
    },
    tier=_or_null("string", description="STABLE, VARIABLE, UNSTABLE or CRITICAL."),
    flags=_array({"type": "string"}),
    last_run=_or_null("string", description="When the latest run ended, RFC 3339."),
)
_OUTCOME: Final = {
    "type": "object",
    "properties": {
        "trace_id": {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"},
        "run_id": {"type": "string"},
        "session_id": {"type": "string"},
        "key": {"type": ["string", "integer"], "description": "A business key."},
        "success": {"type": ["boolean", "string", "integer"]},
        "time": {"type": "string", "description": "When it became known, ISO 8601; default: now."},
    },
    "required": ["success"],
}
"""An outcome, which names its runs by one of four."""
_RUN: Final = {
    "type": "object",
    "properties": {field.name: {"description": field.about} for field in RUN_FIELDS},
    "required": [field.name for field in RUN_FIELDS if not field.optional],
}
_HEALTHY: Final = _object(healthy={"type": "boolean"})
_READY: Final = _object(
    ready={"type": "boolean"},
    reasons={
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Details by reason.",
    },
)
_LATER: Final = _answer(
    "Not now: state is being loaded, or the service is overloaded or stopping. See `Retry-After`."
)


def _export(signal: str, about: str) -> dict[str, Any]:
    body = {"schema": {"type": "string", "format": "binary"}}
    return {
        "post": {
            "summary": about,
            "description": f"An OTLP `Export{signal}ServiceRequest` in protobuf or JSON, plain or gzip.",
            "tags": ["OTLP"],
            "requestBody": {
                "required": True,
                "content": {"application/x-protobuf": body, JSON: {"schema": {"type": "object"}}},
            },
            "responses": {
                "200": _answer("Accepted; `partial_success` names rejected spans or records."),
                "400": _answer("Cannot be decoded."),
                "413": _answer("Larger than 64 MiB, compressed or not."),
                "415": _answer("Neither protobuf nor JSON, or an unknown compression."),
                "503": _LATER,
            },
        }
    }


def _get(
    tag: str, about: str, answers: Mapping[str, Any], *parameters: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    return {
        "get": {
            "summary": about,
            "tags": [tag],
            "parameters": list(parameters),
            "responses": dict(answers),
            **more,
        }
    }


_PAGE: Final = {"200": _answer("A page.", {"type": "string"}, "text/html")}
_OPEN: Final[dict[str, Any]] = {"security": []}
"""No token is needed."""

PATHS: Final[dict[str, Any]] = {
    "/api/v1/agents": _get(
        "API",
        "List the agents with their scores.",
        {
            "200": _answer(
                "The agents, in the order in which they were first seen.",
                _object(
                    total={"type": "integer"},
                    agents=_array({"$ref": "#/components/schemas/AgentLine"}),
                ),
            ),
            "400": _answer("`limit` or `offset` is no whole number."),
            "503": _LATER,
        },
        _query("limit", "integer", "Number of agents, at most 1000 (default)."),
        _query("offset", "integer", "Agents to skip."),
        _query("format", "string", "`csv` for a table."),
    ),
    "/api/v1/agents/{service}/{agent}": _get(
        "API",
        "Get everything about one agent.",
        {
            "200": _answer(
                "One entry, or one for each namespace and environment with that agent. "
                "Its fields are those "
                "of `agent` in report.schema.json, with `change` and `recent_runs`.",
                _object(agents=_array({"type": "object"})),
            ),
            "404": _answer("No agent of that service and name has runs here."),
            "503": _LATER,
        },
        *_NAMES,
        _query("namespace", "string", "Only this `service.namespace`."),
        _query("environment", "string", "Only this `deployment.environment.name`."),
    )
    | {
        "delete": {
            "summary": "Remove an agent and everything that is kept of it.",
            "tags": ["API"],
            "parameters": [
                *_NAMES,
                _query("namespace", "string", "Only this `service.namespace`."),
                _query("environment", "string", "Only this `deployment.environment.name`."),
            ],
            "responses": {
                "200": _answer(
                    "How many agents were removed.", _object(removed={"type": "integer"})
                ),
                "403": _answer("From a page of another origin."),
                "404": _answer("No agent of that service and name has runs here."),
                "503": _LATER,
            },
        }
    },
    "/api/v1/agents/{service}/{agent}/runs": _get(
        "API",
        "List the agent's last runs: 200 with a state directory, else 20.",
        {
            "200": _answer(
                "The runs, newest first.",
                _object(runs=_array({"$ref": "#/components/schemas/Run"})),
            ),
            "404": _answer("No agent of that service and name has runs here."),
            "503": _LATER,
        },
        *_NAMES,
        *(
            _query(name, "string", about)
            for name, about in {
                "outcome": "Only runs with this outcome.",
                "flag": "Only runs with this flag, such as `loop`.",
                "path": "Only runs whose path contains this.",
                "version": "Only runs of this version.",
                "since": "Only runs that ended since, ISO 8601.",
                "until": "Only runs that ended until, ISO 8601.",
                "group": "Only runs of this kind of request, by its `id` in `request_groups`.",
                "format": "`csv` for a table.",
            }.items()
        ),
    ),
    "/api/v1/agents/{service}/{agent}/compare": _get(
        "API",
        "Compare two versions of an agent, or two kinds of request, number by number.",
        {
            "200": _answer(
                "Values, runs, intervals, and whether the difference is more than chance.",
                {"type": "object"},
            ),
            "400": _answer("A version, or a kind of request, has no runs here."),
            "404": _answer("No agent of that service and name has runs here."),
            "503": _LATER,
        },
        *_NAMES,
        _query("before", "string", "The version to compare with."),
        _query("after", "string", "The version that is compared."),
        _query("group", "string", "The kind of request to compare with, by its `id`."),
        _query("other", "string", "The kind of request that is compared."),
    ),
    "/api/v1/agents/{service}/{agent}/groups/{group}": {
        "put": {
            "summary": "Name a group of alike requests.",
            "tags": ["API"],
            "parameters": [
                *_NAMES,
                _path("group", "Its letter: `id` in `request_groups`."),
                _query("name", "string", "The name; none takes the name away."),
            ],
            "responses": {
                "200": _answer("The letter and the name.", {"type": "object"}),
                "404": _answer("No such agent, or no such group of it."),
                "503": _LATER,
            },
        }
    },
    "/api/v1/agents/{service}/{agent}/gate": _get(
        "API",
        "Check targets of one agent, as `otel-reliability gate` does.",
        {
            "200": _answer(
                "The targets with value, bound, runs and state: held, failed or no data.",
                {"type": "object"},
            ),
            "400": _answer("A target cannot be read, or is not one of an agent."),
            "404": _answer("No agent of that service and name has runs here."),
            "503": _LATER,
        },
        *_NAMES,
        _query("require", "array", "Targets like `score>=80`; repeatable."),
        _query(
            "min_runs", "integer", "Runs that a target needs; default: those that a score needs."
        ),
        _query("namespace", "string", "Only this `service.namespace`."),
        _query("environment", "string", "Only this `deployment.environment.name`."),
    ),
    "/api/v1/outcomes": {
        "post": {
            "summary": "Report outcomes that became known after their runs; all are accepted, or none.",
            "tags": ["API"],
            "requestBody": {
                "required": True,
                "content": {JSON: {"schema": _object(outcomes=_array(_OUTCOME))}},
            },
            "responses": {
                "200": _answer(
                    "How many runs each has reached; one that is unknown waits ten minutes.",
                    _object(
                        reached={"type": "integer"},
                        unknown={"type": "integer"},
                        outcomes=_array(
                            _object(
                                state={"enum": ["reached", "unknown"]}, runs={"type": "integer"}
                            )
                        ),
                    ),
                ),
                "400": _answer("One of them cannot be read; the answer says which, and why."),
                "403": _answer("From a page of another origin."),
                "415": _answer("No JSON."),
                "503": _LATER,
            },
        }
    },
    "/metrics": _get(
        "Metrics",
        "Get all metrics.",
        {
            "200": _answer(
                "Prometheus text; OpenMetrics with exemplars if the client accepts it.",
                {"type": "string"},
                "text/plain",
            ),
            "503": _answer("State is being loaded: counters would be incomplete."),
        },
    ),
    "/healthz": _get(
        "Health",
        "Check whether the process works; restart it if not.",
        {"200": _answer("It works.", _HEALTHY), "503": _answer("It does not.", _HEALTHY)},
        **_OPEN,
    ),
    "/readyz": _get(
        "Health",
        "Check whether requests are accepted now.",
        {
            "200": _answer("They are.", _READY),
            "503": _answer("They are not; `reasons` says why.", _READY),
        },
        **_OPEN,
    ),
    "/v1/traces": _export("Trace", "Send spans."),
    "/v1/logs": _export("Logs", "Send log events: coding agents, evaluations and outcomes."),
    "/v1/metrics": _export(
        "Metrics", "Accepted and discarded, for agents that send all signals to one endpoint."
    ),
    "/": _get("Pages", "Show all agents.", _PAGE),
    "/agents/{service}/{agent}": _get(
        "Pages", "Show one agent.", {**_PAGE, "404": _answer("No such agent.")}, *_NAMES
    ),
    "/agents/{service}/{agent}/runs": _get(
        "Pages", "Show the last runs of an agent.", _PAGE, *_NAMES
    ),
    "/agents/{service}/{agent}/runs/{run}": _get(
        "Pages", "Show one run with its steps.", _PAGE, *_NAMES, _path("run", "Its id.")
    ),
    "/agents/{service}/{agent}/compare": _get(
        "Pages", "Compare two versions, two times or two kinds of request.", _PAGE, *_NAMES
    ),
    "/agents/{service}/{agent}/group": {
        "post": {
            "summary": "Name a group of alike requests; only from a page of this service.",
            "tags": ["Pages"],
            "parameters": list(_NAMES),
            "responses": {
                "303": _answer("Noted."),
                "403": _answer("From elsewhere."),
                "404": _answer("No such agent."),
            },
        }
    },
    "/agents/{service}/{agent}/acknowledge": {
        "post": {
            "summary": "Acknowledge the last change; only from a page of this service.",
            "tags": ["Pages"],
            "parameters": list(_NAMES),
            "responses": {
                "303": _answer("Noted."),
                "403": _answer("From elsewhere."),
                "404": _answer("No such agent."),
            },
        }
    },
    "/alerts": _get("Pages", "Show what each alert means, and what to do.", _PAGE),
    "/static/{name}": _get(
        "Pages",
        "Get a style sheet, script or picture of the pages.",
        {"200": _answer("The file."), "404": _answer("No such file.")},
        _path("name", "Its name."),
    ),
}

DOCUMENT: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {
        "title": "otel-reliability service",
        "version": "v1",
        "description": "Reliability of AI agents, from the OpenTelemetry spans they already emit.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    },
    "servers": [
        {
            "url": "http://127.0.0.1:8080",
            "description": "Pages, API and health checks (`service.ui`).",
        },
        {"url": "http://127.0.0.1:4318", "description": "OTLP over HTTP (`service.http`)."},
        {"url": "http://127.0.0.1:9464", "description": "/metrics (`service.metrics`)."},
    ],
    "security": [{}, {"token": []}],
    "paths": PATHS,
    "components": {
        "securitySchemes": {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "If the service has tokens.",
            }
        },
        "schemas": {"AgentLine": _AGENT_LINE, "Run": _RUN},
    },
}

ABOUT: Final = """# HTTP API

The service answers on three addresses: pages, API and health checks on 8080, OTLP on 4318, `/metrics` on 9464
([settings](settings.md#service)). [openapi.json](openapi.json) describes every path for programs. If the service has tokens, send
`Authorization: Bearer …`; health checks need none.

<!-- not run: needs a running service; tests/service make the same requests -->
```bash
curl http://127.0.0.1:8080/api/v1/agents
curl http://127.0.0.1:8080/api/v1/agents/shop/refunds
```

The fields of a run stand on [a page of their own](run-fields.md). The fields of an agent are those of the [JSON report](report.schema.json): each number with its bounds, the runs behind it,
and why it is absent. Fields may be added to `/api/v1`; none changes its meaning. Numbers are those of the whole window; details
behind them come from its newest 500 runs, and intervals are computed for windows of up to 200.
"""


def page() -> str:
    """Return the page: what the API is, and a table of paths by group."""
    return ABOUT + "\n" + "\n".join(_tables())


def _tables() -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for path, methods in PATHS.items():
        for method, about in methods.items():
            codes = ", ".join(about["responses"])
            row = (
                f"| `{method.upper()} {path}` | {about['summary']} | {_parameters(about)} | "
                f"{codes} |\n"
            )
            groups.setdefault(about["tags"][0], []).append(row)
    for group, rows in groups.items():
        yield (
            f"## {group}\n\n| request | what | query | status |\n|---|---|---|---|\n{''.join(rows)}"
        )


def _parameters(about: Mapping[str, Any]) -> str:
    named = (one["name"] for one in about.get("parameters", ()) if one["in"] == "query")
    return ", ".join(f"`{name}`" for name in named)
