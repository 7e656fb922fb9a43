"""The price table: what a model costs per token, and how much it reads at once.

It is the one that genai-prices ships (the `prices` extra): nothing is fetched, and its date is that
of the installed version. Its import takes up to a second and tens of megabytes, so it waits for
the first model call, and no thread of a host does it: see `load_beside`.
"""

from __future__ import annotations

import re
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

INSTALLED: Final = find_spec("genai_prices") is not None
"""False without the `prices` extra: no model has a price or a context window then."""

PROVIDERS: Final = {
    "x_ai": "x-ai",
    "gcp.gen_ai": "google",
    "azure.ai.inference": "azure",
    "az.ai.inference": "azure",
}
"""Providers that the semantic conventions name as the table does not."""
FRAMEWORKS: Final = frozenset(
    {
        "_other",
        "ag2",
        "agno",
        "autogen",
        "crewai",
        "gcp.vertex.agent",
        "dspy",
        "haystack",
        "koog",
        "langchain",
        "langgraph",
        "litellm",
        "llama_index",
        "mastra",
        "microsoft.agent_framework",
        "microsoft.agents.ai",
        "openai_agents",
        "pydantic_ai",
        "semantic_kernel",
        "smolagents",
        "spring_ai",
        "strands",
        "strands-agents",
        "vercel",
    }
)
"""Names of frameworks that instrumentations give as the provider. They do not say who serves the
model: its own name decides.
"""

MAX_MODELS: Final = 4_096
"""Pairs of model and provider that are remembered."""
MAX_NAME: Final = 256
"""Maximum characters of a model's name that is looked up."""

_PATH: Final = "models/"
"""Prefix that Google puts before the name of a model, after the project."""
_MILLION: Final = 10**6
_DATE: Final = re.compile(r"[-@](\d{4}-?\d{2}-?\d{2}|\d{6,8}|latest)$")
_BEGINS_AT: Final = "start_date"


class Usage(Struct, frozen=True, gc=False):
    """Tokens of one model call. `cached` and `cache_written` are parts of `input`."""

    input: int
    output: int
    cached: int = 0
    cache_written: int = 0


class Price(NamedTuple):
    """Prices of a model, each in USD per million tokens, a fixed one or one that depends on
    the input tokens of a call (`TieredPrices` of genai-prices). `request`: USD per call.
    """

    input: Any
    output: Any
    cached: Any
    cache_written: Any
    request: float

    def of(self, usage: Usage) -> float | None:
        """Return the cost in USD of a call; None where tokens of a kind have no price, or where
        more were cached than read.

        >>> Price(2.5, 10.0, 1.25, None, 0.0).of(Usage(1_000_000, 100_000, cached=800_000))
        2.5
        """
        new = usage.input - usage.cached - usage.cache_written
        if new < 0:
            return None
        total = 0.0
        for tokens, price in (
            (new, self.input),
            (usage.cached, self.input if self.cached is None else self.cached),
            (usage.cache_written, self.input if self.cache_written is None else self.cache_written),
            (usage.output, self.output),
        ):
            if tokens:
                if price is None:
                    return None
                total += tokens * _rate(price, usage.input)
        return total / _MILLION + self.request


def _rate(price: Any, input_tokens: int) -> float:
    """Return a price per million tokens in a call of so many input tokens."""
    if isinstance(price, float):
        return price
    above = [tier.price for tier in price.tiers if input_tokens > tier.start]
    return float(above[-1] if above else price.base)


# --- Loading --------------------------------------------------------------------------------------


class _Loading:
    """The thread that loads the table beside the host's own; `done` is set once it has."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.thread: threading.Thread | None = None


_loading: Final = _Loading()


def is_loaded() -> bool:
    """Return whether a look-up is quick: the table is loaded, or there is none."""
    return not INSTALLED or _loading.done.is_set()


def load_beside() -> None:
    """Load the table on a thread of its own, which ends when that is done.

    Processes that must not stall call this when the first span arrives, and look nothing up before
    `is_loaded`. A look-up elsewhere loads the table itself, or waits for that thread. So does the
    interpreter at its end, for a second at most: a thread that it stops in the middle of loading
    compiled code aborts the process ("exception not rethrown"). A thread is a daemon, too, where
    the one that starts it is (the worker of a span exporter), unless it says that it is none. Once
    the interpreter has begun to end it waits for no new thread, and none is started.
    """
    thread = _loading.thread
    is_ending = not threading.main_thread().is_alive()
    if is_loaded() or is_ending or (thread is not None and thread.is_alive()):
        return
    _loading.thread = threading.Thread(
        target=_load_quietly, name="otel-reliability price table", daemon=False
    )
    _loading.thread.start()


def wait_until_loaded(timeout_s: float = 5.0) -> None:
    """Wait for the thread of `load_beside`, if it runs: a process that forks in the middle of an
    import leaves the child a lock that is never released.
    """
    thread = _loading.thread
    if thread is not None:
        thread.join(timeout_s)


def _load_quietly() -> None:
    try:
        _snapshot()
    except Exception:  # noqa: BLE001  a broken package: who looks a model up sees the error
        _loading.done.set()


@cache
def _snapshot_module() -> Any:
    return import_module("genai_prices.data_snapshot")


@cache
def _snapshot() -> Any:
    snapshot = _snapshot_module().get_snapshot()
    _loading.done.set()
    return snapshot


# --- Look-ups -------------------------------------------------------------------------------------


def price_of(model: str, provider: str | None, time_ns: int) -> Price | None:
    """Return the price of a model at a time, from this provider.

    None where the table has none: it does not know the model, or not from this provider (a model
    that is free on one's own machine costs money elsewhere). Without a provider, the prefix of the
    model's name names it, else its own name does.
    """
    found = _model(model, provider)
    if found is None:
        return None
    price = found.prices
    if _conditional(price):
        price = found.get_prices(datetime.fromtimestamp(time_ns / 1e9, UTC))
    known = _prices.get(id(price))
    if known is None:
        known = _prices[id(price)] = _price(price)
    return known


_prices: Final[dict[int, Price]] = {}
"""Prices by the identity of the table's own, which lives as long as the process."""


def _price(price: Any) -> Price:
    per_million = (
        price.input_mtok,
        price.output_mtok,
        price.cache_read_mtok,
        price.cache_write_mtok,
    )
    fixed = (float(one) if isinstance(one, Decimal) else one for one in per_million)
    return Price(*fixed, request=float(price.requests_kcount or 0) / 1e3)


def context_window(model: str) -> int | None:
    """Return the context window of a model in tokens, by its name as it is, without the provider's
    prefix, or without a date; None where the table has none.
    """
    if not INSTALLED or len(model) > MAX_NAME:
        return None
    bare = model.rpartition("/")[2]
    for name in dict.fromkeys((model, bare, _DATE.sub("", bare))):
        found = _found(name, None)
        window = None if found is None else found.context_window
        if isinstance(window, int) and window > 0:
            return window
    return None


@lru_cache(MAX_MODELS)
def _model(model: str, provider: str | None) -> Any:
    """Return the table's model; None where it is not known from this provider."""
    if not INSTALLED or len(model) > MAX_NAME:
        return None
    model = model.rpartition(_PATH)[2]
    named = None if provider is None or provider.lower() in FRAMEWORKS else provider.lower()
    prefix, slash, bare = model.partition("/")
    if named is None:
        return _found(bare, prefix) if slash else _found(model, None)
    serving = PROVIDERS.get(named, named)
    return _found(model, serving) or (_found(bare, serving) if slash else None)


def _found(model: str, provider: str | None) -> Any:
    """Return the table's model. (Its own look-up remembers every name that it does not know.)"""
    name = model.lower()
    providers = _snapshot().providers
    if provider is None:
        serving = next((one for one in providers if _serves(one, name)), None)
    else:
        serving = _snapshot_module().find_provider_by_id(providers, provider)
    return None if serving is None else serving.find_model(name, all_providers=providers)


def _serves(provider: Any, name: str) -> bool:
    """Return whether a model of this name is the provider's own."""
    return provider.model_match is not None and provider.model_match.is_match(name)


# --- Its date -------------------------------------------------------------------------------------


class TableDate(NamedTuple):
    """The version of genai-prices, and the day of the newest price in it."""

    version: str
    newest: date | None

    def __str__(self) -> str:
        """Return both, as reports show them."""
        day = "" if self.newest is None else f", newest price of {self.newest.isoformat()}"
        return f"genai-prices {self.version}{day}"


def table_date(today: date) -> TableDate | None:
    """Return how old the table is; None without one.

    The package has no date of its own. The newest day on which one of its prices began, and that
    is not in the future, is the closest there is: the table is at least as new.
    """
    return _table_date(today) if INSTALLED else None


@cache
def _table_date(today: date) -> TableDate:
    models = [model for provider in _snapshot().providers for model in provider.models]
    conditional = [one for model in models for one in _conditional(model.prices)]
    days = [getattr(one.constraint, _BEGINS_AT, None) for one in conditional]
    past = [day for day in days if isinstance(day, date) and day <= today]
    return TableDate(version("genai-prices"), max(past, default=None))


def _conditional(prices: Any) -> list[Any]:
    """Return the prices of a model that hold from a day on; a price that always held is none."""
    return cast("list[Any]", prices) if isinstance(prices, list) else []
