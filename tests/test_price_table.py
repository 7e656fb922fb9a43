"""The price table, against genai-prices' own arithmetic."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from datetime import UTC, date, datetime

import pytest

from otel_reliability import price_table
from otel_reliability.price_table import Usage, context_window, price_of

snapshots = pytest.importorskip(
    "genai_prices.data_snapshot", reason="the prices extra is not installed"
)

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * 10**9


def test_a_call_costs_what_genai_prices_says() -> None:
    from genai_prices.types import Usage as TheirUsage  # noqa: PLC0415

    chosen = random.Random(7)
    compared = 0
    for provider in snapshots.get_snapshot().providers:
        for model in provider.models:
            price = price_of(model.id, provider.id, NOW_NS)
            known = provider.find_model(model.id, all_providers=snapshots.get_snapshot().providers)
            if price is None or price.input is None or price.output is None:
                continue
            read = chosen.choice([10, 1_000, 150_000, 250_000, 900_000])
            usage = Usage(read, chosen.randrange(1, 5_000), read // 2, read // 3)
            theirs = known.calc_price(
                TheirUsage(
                    input_tokens=usage.input,
                    output_tokens=usage.output,
                    cache_read_tokens=usage.cached,
                    cache_write_tokens=usage.cache_written,
                ),
                provider,
                genai_request_timestamp=NOW,
            )
            assert price.of(usage) == pytest.approx(float(theirs.total_price)), model.id
            compared += 1

    assert compared > 1_000


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gpt-4o-mini", "openai"),
        ("gpt-4o-mini-2024-07-18", None),
        ("openai/gpt-4o-mini", None),
        ("openai/gpt-4o-mini", "openai"),
        ("gpt-4o-mini", "azure.ai.openai"),
        ("gpt-4o-mini", "langchain"),
        ("gpt-4o-mini", "Langchain"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "aws.bedrock"),
        ("gemini-2.5-flash", "gcp.gen_ai"),
        ("projects/p/locations/l/publishers/google/models/gemini-2.5-flash", "gcp.vertex_ai"),
        ("grok-3", "x_ai"),
    ],
)
def test_a_model_is_known_by_the_names_that_telemetry_has(model: str, provider: str | None) -> None:
    assert price_of(model, provider, NOW_NS) is not None


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("house-model", None),
        ("gpt-4o-mini", "ollama"),
        ("ollama/deepseek-r1", None),
        ("deepseek-r1", "vllm"),
        ("mistral-large-latest", "ibm.watsonx.ai"),
        ("gpt-4o-mini", "127.0.0.1:35875"),
        ("x" * 100_000, None),
    ],
)
def test_a_model_of_an_unknown_provider_has_no_price(model: str, provider: str | None) -> None:
    assert price_of(model, provider, NOW_NS) is None


def test_a_price_is_that_of_the_day_of_the_call() -> None:
    changed = next(
        (provider, model)
        for provider in snapshots.get_snapshot().providers
        for model in provider.models
        if len(starts := price_table._conditional(model.prices)) == 2
        and getattr(starts[1].constraint, "start_date", None)
        and starts[0].prices.input_mtok != starts[1].prices.input_mtok
        and provider.find_model(model.id) is model
    )
    provider, model = changed
    start = model.prices[1].constraint.start_date
    begins_ns = int(datetime(start.year, start.month, start.day, tzinfo=UTC).timestamp()) * 10**9
    day_ns = 86_400 * 10**9

    before = price_of(model.id, provider.id, begins_ns - day_ns)
    after = price_of(model.id, provider.id, begins_ns + day_ns)

    assert before is not None
    assert before != after


def test_context_windows_are_known_without_prefix_and_date() -> None:
    assert context_window("openai/gpt-4o-mini-2024-07-18") == 128_000
    assert context_window("house-model") is None


def test_the_date_of_the_table_is_that_of_its_newest_price() -> None:
    found = price_table.table_date(date(2026, 11, 28))

    assert found is not None
    assert found.newest is not None
    assert found.newest <= date(2026, 11, 28)
    assert str(found).startswith("genai-prices 0.")


def test_names_that_nobody_knows_take_no_memory() -> None:
    snapshot = snapshots.get_snapshot()
    for number in range(price_table.MAX_MODELS + 100):
        price_of(f"house-{number}", None, NOW_NS)

    assert price_table._model.cache_info().currsize <= price_table.MAX_MODELS
    assert not any(name.startswith("house-") for name, *_ in snapshot._provider_misses if name)


def test_the_table_is_loaded_on_a_thread_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    loading = price_table._Loading()
    monkeypatch.setattr(price_table, "_loading", loading)
    seen: list[str] = []

    def load() -> None:
        seen.append(threading.current_thread().name)
        loading.done.set()

    monkeypatch.setattr(price_table, "_load_quietly", load)
    assert not price_table.is_loaded()
    price_table.load_beside()
    price_table.wait_until_loaded()

    assert price_table.is_loaded()
    assert seen == ["otel-reliability price table"]
    assert loading.thread is not None
    assert not loading.thread.is_alive()


def test_without_the_extra_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    price_table._model.cache_clear()
    monkeypatch.setattr(price_table, "INSTALLED", False)

    assert price_of("gpt-4o", "openai", NOW_NS) is None
    assert context_window("gpt-4o") is None
    assert price_table.table_date(date(2026, 11, 28)) is None
    assert price_table.is_loaded()
    price_table._model.cache_clear()


def test_importing_the_package_does_not_load_the_table() -> None:
    import subprocess  # noqa: PLC0415

    code = (
        "import sys, otel_reliability.processor;"
        "from otel_reliability.processor import ReliabilitySpanProcessor as P; P();"
        "assert 'genai_prices' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("is_daemon", [False, True])
def test_a_process_that_ends_while_the_table_loads_ends_in_order(is_daemon: bool) -> None:
    """A daemon thread that the interpreter stops in the middle of compiled code aborts it. The
    worker of a span exporter is a daemon, and its threads are, unless they say that they are none.
    """
    program = f"""
import threading, time
from otel_reliability import price_table

def load():
    time.sleep(0.3)
    print("loaded", flush=True)

price_table._load_quietly = load
worker = threading.Thread(target=price_table.load_beside, daemon={is_daemon})
worker.start()
worker.join()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\n", "")


def test_no_thread_is_started_once_the_interpreter_ends() -> None:
    """It would wait for none. An exporter gets its first spans then, from a short program."""
    program = """
import atexit, threading
from otel_reliability import price_table

atexit.register(lambda: (price_table.load_beside(), print(threading.active_count())))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
