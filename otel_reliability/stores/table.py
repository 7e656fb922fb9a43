"""The table of trace stores: where each is reached, how it is asked, and what it loses."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from otel_reliability.errors import ConfigurationError
from otel_reliability.stores import jaeger, langfuse, langsmith, mlflow, phoenix, tempo
from otel_reliability.stores.client import Client
from otel_reliability.stores.trace import Known, Period, Trace

Environment: TypeAlias = Mapping[str, str]


class TraceStore(NamedTuple):
    """One store. `url` and `project` are environment variables, the first that is set counts;
    `headers` returns those that carry credentials.
    """

    name: str
    fetch: Callable[[Client, Period, str | None, Known], Iterator[Trace]]
    url: tuple[str, ...]
    default_url: str
    headers: Callable[[Environment], dict[str, str]]
    project: tuple[str, ...]
    project_is: str
    loses: str


def _none(_: Environment) -> dict[str, str]:
    return {}


def _basic(user: str, password: str) -> dict[str, str]:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def _phoenix(env: Environment) -> dict[str, str]:
    given = [pair.partition("=") for pair in env.get("PHOENIX_CLIENT_HEADERS", "").split(",")]
    found = {unquote(name.strip()): unquote(value.strip()) for name, _, value in given if value}
    key = env.get("PHOENIX_API_KEY")
    return {**found, "Authorization": f"Bearer {key}"} if key else found


def _mlflow(env: Environment) -> dict[str, str]:
    found: dict[str, str] = {}
    if env.get("MLFLOW_WORKSPACE"):
        found["X-MLFLOW-WORKSPACE"] = env["MLFLOW_WORKSPACE"]
    if env.get("MLFLOW_TRACKING_TOKEN"):
        found["Authorization"] = f"Bearer {env['MLFLOW_TRACKING_TOKEN']}"
    elif env.get("MLFLOW_TRACKING_USERNAME"):
        password = env.get("MLFLOW_TRACKING_PASSWORD", "")
        found |= _basic(env["MLFLOW_TRACKING_USERNAME"], password)
    return found


def _langfuse(env: Environment) -> dict[str, str]:
    keys = env.get("LANGFUSE_PUBLIC_KEY"), env.get("LANGFUSE_SECRET_KEY")
    if not (keys[0] and keys[1]):
        raise _unset("LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    return _basic(keys[0], keys[1])


def _langsmith(env: Environment) -> dict[str, str]:
    key = env.get("LANGSMITH_API_KEY") or env.get("LANGCHAIN_API_KEY")
    if not key:
        raise _unset("LANGSMITH_API_KEY")
    workspace = env.get("LANGSMITH_WORKSPACE_ID")
    return {"x-api-key": key, **({"X-Tenant-Id": workspace} if workspace else {})}


def _unset(names: str) -> ConfigurationError:
    return ConfigurationError(names, None, "set", "export it, as for the store's own SDK")


STORES: Final[Mapping[str, TraceStore]] = {
    store.name: store
    for store in (
        TraceStore(
            "jaeger",
            jaeger.fetch,
            (),
            "http://localhost:16686",
            _none,
            (),
            "service",
            "",
        ),
        TraceStore(
            "tempo",
            tempo.fetch,
            (),
            "http://localhost:3200",
            _none,
            (),
            "service",
            "cuts attributes at 2048 bytes by default",
        ),
        TraceStore(
            "phoenix",
            phoenix.fetch,
            ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_BASE_URL"),
            "http://localhost:6006",
            _phoenix,
            ("PHOENIX_PROJECT_NAME",),
            "project",
            "loses scopes, resources (service, version), span kinds and links; times to the "
            "microsecond",
        ),
        TraceStore(
            "mlflow",
            mlflow.fetch,
            ("MLFLOW_TRACKING_URI",),
            "http://localhost:5000",
            _mlflow,
            ("MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"),
            "experiment",
            "loses scopes and span kinds",
        ),
        TraceStore(
            "langfuse",
            langfuse.fetch,
            ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"),
            "https://cloud.langfuse.com",
            _langfuse,
            (),
            "environment",
            "loses links, events and span kinds; times to the millisecond",
        ),
        TraceStore(
            "langsmith",
            langsmith.fetch,
            ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"),
            "https://api.smith.langchain.com",
            _langsmith,
            ("LANGSMITH_PROJECT", "LANGCHAIN_PROJECT"),
            "project",
            "loses resources (service, version), scopes, span kinds and links; times to the "
            "microsecond",
        ),
    )
}


def client_of(
    store: TraceStore,
    env: Environment,
    url: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Client:
    """Return what speaks to a store, by its environment variables unless given."""
    base = url or first_of(env, store.url) or store.default_url
    return Client(base, {**store.headers(env), **(headers or {})})


def first_of(env: Environment, names: tuple[str, ...]) -> str | None:
    """Return the value of the first variable that is set."""
    return next((env[name] for name in names if env.get(name)), None)
