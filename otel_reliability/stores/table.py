"""The table of trace stores: where each is reached, how it is asked, and what it loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from otel_reliability.stores import jaeger, langfuse, langsmith, mlflow, phoenix, tempo
from otel_reliability.stores.client import Client, StoreError, basic
from otel_reliability.stores.trace import Known, Period, Trace

Environment: TypeAlias = Mapping[str, str]


class TraceStore(NamedTuple):
    """One store. `url` and `project` are environment variables, the first that is set counts;
    `headers` returns those that carry credentials, which `credentials` names, as the object of
    "set". `loses`: what it does not give back, as the predicate of a sentence.
    """

    name: str
    fetch: Callable[[Client, Period, str | None, Known], Iterator[Trace]]
    default_url: str
    headers: Callable[[Environment], dict[str, str]]
    credentials: str = "a header of it with --header NAME=VARIABLE"
    url: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    loses: str = ""


def _none(_: Environment) -> dict[str, str]:
    return {}


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
        found |= basic(f"{env['MLFLOW_TRACKING_USERNAME']}:{password}")
    return found


def _langfuse(env: Environment) -> dict[str, str]:
    names = "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"
    keys = [env.get(name) for name in names]
    missing = [name for name, key in zip(names, keys, strict=True) if not key]
    if missing:
        raise _unset(*missing)
    return basic(f"{keys[0]}:{keys[1]}")


def _langsmith(env: Environment) -> dict[str, str]:
    key = env.get("LANGSMITH_API_KEY") or env.get("LANGCHAIN_API_KEY")
    if not key:
        raise _unset("LANGSMITH_API_KEY")
    workspace = env.get("LANGSMITH_WORKSPACE_ID") or env.get("LANGCHAIN_WORKSPACE_ID")
    return {"x-api-key": key, **({"X-Tenant-Id": workspace} if workspace else {})}


def _unset(*names: str) -> StoreError:
    missing = " and ".join(names)
    remedy = f"export {'it' if len(names) == 1 else 'them'}, as for the store's own SDK"
    return StoreError(f"{missing} {'is' if len(names) == 1 else 'are'} not set; {remedy}.")


_SENDS_TO: Final = "/v1/traces"
"""Ends an address that an exporter sends to; the store itself is above it."""

STORES: Final[Mapping[str, TraceStore]] = {
    store.name: store
    for store in (
        TraceStore(
            name="jaeger",
            fetch=jaeger.fetch,
            default_url="http://localhost:16686",
            headers=_none,
        ),
        TraceStore(
            name="tempo",
            fetch=tempo.fetch,
            default_url="http://localhost:3200",
            headers=_none,
            loses="cuts attributes at 2048 bytes by default",
        ),
        TraceStore(
            name="phoenix",
            fetch=phoenix.fetch,
            url=("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_BASE_URL"),
            default_url="http://localhost:6006",
            headers=_phoenix,
            credentials="PHOENIX_API_KEY, or PHOENIX_CLIENT_HEADERS",
            project=("PHOENIX_PROJECT_NAME",),
            loses="loses scopes, resources (service, version), span kinds and links; times to the "
            "microsecond",
        ),
        TraceStore(
            name="mlflow",
            fetch=mlflow.fetch,
            url=("MLFLOW_TRACKING_URI",),
            default_url="http://localhost:5000",
            headers=_mlflow,
            credentials="MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and _PASSWORD",
            project=("MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"),
            loses="loses scopes and span kinds",
        ),
        TraceStore(
            name="langfuse",
            fetch=langfuse.fetch,
            url=("LANGFUSE_BASE_URL", "LANGFUSE_HOST"),
            default_url="https://cloud.langfuse.com",
            headers=_langfuse,
            credentials="LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, and LANGFUSE_BASE_URL to "
            "the region that they belong to",
            loses="loses links, events and span kinds; times to the millisecond",
        ),
        TraceStore(
            name="langsmith",
            fetch=langsmith.fetch,
            url=("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"),
            default_url="https://api.smith.langchain.com",
            headers=_langsmith,
            credentials="LANGSMITH_API_KEY, with LANGSMITH_WORKSPACE_ID where it has several, and "
            "LANGSMITH_ENDPOINT to its region",
            project=("LANGSMITH_PROJECT", "LANGCHAIN_PROJECT"),
            loses="loses resources (service, version), scopes, span kinds and links; times to the "
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
    variable = next((name for name in store.url if env.get(name)), None)
    base = url or (env[variable] if variable else _host_of(store, env) or store.default_url)
    return Client(
        base.removesuffix("/").removesuffix(_SENDS_TO),
        {**store.headers(env), **(headers or {})},
        named="--url" if url or variable is None else variable,
        credentials=store.credentials,
    )


def _host_of(store: TraceStore, env: Environment) -> str | None:
    """Return the address of a Phoenix that is given by host and port."""
    host = env.get("PHOENIX_HOST") if store.name == "phoenix" else None
    if not host:
        return None
    reachable = "localhost" if host in ("0.0.0.0", "::") else host  # noqa: S104  it is asked
    path = env.get("PHOENIX_HOST_ROOT_PATH", "").strip("/")
    base = f"http://{reachable}:{env.get('PHOENIX_PORT') or 6006}"
    return f"{base}/{path}" if path else base


def first_of(env: Environment, names: tuple[str, ...]) -> str | None:
    """Return the value of the first variable that is set."""
    return next((env[name] for name in names if env.get(name)), None)
