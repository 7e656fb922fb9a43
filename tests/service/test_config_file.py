from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.config_file import load_config
from otel_reliability.service.settings import Config
from tests.service.certificates import Authority

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA: Any = json.loads((DOCS / "reference" / "settings.schema.json").read_text(encoding="utf-8"))


def loaded(tmp_path: Path, content: str, env: dict[str, str] | None = None, **flags: Any) -> Config:
    file = tmp_path / "service.yaml"
    file.write_text(content)
    return load_config(file, env or {}, flags)


def test_the_file_is_below_the_environment_and_that_below_flags(tmp_path: Path) -> None:
    content = """
metrics: {min_runs: 7, retry_threshold: 4}
service: {drain: 3s, http: "127.0.0.1:1", push: "http://file:4317"}
"""
    env = {
        "OTEL_RELIABILITY_METRICS_MIN_RUNS": "8",
        "OTEL_RELIABILITY_SERVICE_HTTP": "127.0.0.1:2",
        "OTEL_RELIABILITY_SERVICE_PUSH": "http://environment:4317",
    }
    found = loaded(tmp_path, content, env, service={"http": "127.0.0.1:3"}, metrics={"min_runs": 9})

    assert (found.metrics.min_runs, found.metrics.retry_threshold) == (9, 4)
    assert (found.service.http, found.service.drain) == ("127.0.0.1:3", 3.0)
    assert found.service.push == "http://environment:4317"


def test_without_a_word_everything_is_local_and_large() -> None:
    found = load_config()

    assert {found.service.grpc, found.service.http, found.service.metrics, found.service.ui} == {
        "127.0.0.1:4317",
        "127.0.0.1:4318",
        "127.0.0.1:9464",
        "127.0.0.1:8080",
    }
    assert found.limits.agents > 20_000


@pytest.mark.parametrize("ending", [".yaml", ".yml", ".toml", ".json"])
def test_a_file_is_read_by_its_ending(tmp_path: Path, ending: str) -> None:
    content = {"service": {"drain": "10s"}, "metrics": {"min_runs": 3}}
    texts = {
        ".toml": '[service]\ndrain = "10s"\n[metrics]\nmin_runs = 3\n',
        ".json": json.dumps(content),
    }
    file = tmp_path / f"settings{ending}"
    file.write_text(texts.get(ending) or yaml.safe_dump(content))
    found = load_config(file)

    assert (found.service.drain, found.metrics.min_runs) == (10.0, 3)


@pytest.mark.parametrize("content", ["", "# nothing\n", "service:\n", "service: {}\nmetrics:\n"])
def test_an_empty_file_says_nothing(tmp_path: Path, content: str) -> None:
    assert loaded(tmp_path, content) == load_config()


@pytest.mark.parametrize(
    ("content", "field", "remedy"),
    [
        ("service: {http: 80}", "service.http", "127.0.0.1:4317"),
        ("service: {http: 'here'}", "service.http", "127.0.0.1:4317"),
        ("service: {http: '::1:4318'}", "service.http", "127.0.0.1:4317"),
        ("service: {http: 'host:99999'}", "service.http", "127.0.0.1:4317"),
        ("service: {htp: 'off'}", "service.htp", "nearest is http"),
        ("service: {state_limit: lots}", "service.state_limit", "64KiB"),
        ("service: {queue: 1MiB}", "service.queue", "nearest"),
        ("service: {push: 'box:4317'}", "service.push", "http://"),
        ("service: {token: 'two words'}", "service.token", ""),
        ("service: {token_file: /nowhere}", "service.token_file", "path"),
        ("service: {tls: {certificate: /nowhere}}", "service.tls.certificate", "tls.key too"),
        ("service: {tls: {client_ca: /nowhere}}", "service.tls.client_ca", "tls.certificate too"),
        ("service: [1]", "service", "{name: value}"),
        ("- 1", "--config", "name: value"),
        ("a: [", "--config", "indentation"),
        ("metrics: {min_runs: 0}", "metrics.min_runs", "1"),
    ],
)
def test_what_is_wrong_is_told_in_four_parts(
    tmp_path: Path, content: str, field: str, remedy: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, content)

    assert raised.value.field == field
    assert remedy in raised.value.remedy
    assert f"{field}: " in str(raised.value)
    assert " is not " in str(raised.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigurationError, match=r"\.yaml, \.toml or \.json"):
        load_config(tmp_path / "settings.ini")


def test_a_misspelt_variable_is_told() -> None:
    with pytest.raises(ConfigurationError, match="OTEL_RELIABILITY_SERVICE_HTTP"):
        load_config(env={"OTEL_RELIABILITY_SERVICE_HTPP": "off"})
    with pytest.raises(ConfigurationError, match="OTEL_RELIABILITY_METRICS_MIN_RUNS"):
        load_config(env={"OTEL_RELIABILITY_METRICS_MINRUNS": "3"})


def test_secrets_are_not_shown() -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_config(env={"OTEL_RELIABILITY_SERVICE_TOKEN": "se cret"})
    found = load_config(flags={"service": {"token": "sesame"}})

    assert "se cret" not in str(raised.value)
    assert "sesame" not in repr(found)


@pytest.mark.parametrize("door", ["grpc", "http", "metrics", "ui"])
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.168.0.7", "example"])
def test_a_door_open_to_other_machines_is_refused(door: str, host: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_config(flags={"service": {door: f"{host}:4000"}})

    assert raised.value.field == f"service.{door}"
    assert "allow_public" in raised.value.remedy


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "off"])
def test_a_local_door_is_not_refused(address: str) -> None:
    assert load_config(flags={"service": {"http": address}}).service.http == address


@pytest.mark.parametrize("guard", ["token", "token_file", "tls", "allow_public"])
def test_a_guarded_door_is_not_refused(tmp_path: Path, guard: str) -> None:
    pair = Authority(tmp_path, "ours").issue("server")
    (tmp_path / "tokens").write_text("secret")
    guards: dict[str, dict[str, object]] = {
        "token": {"token": "secret"},
        "token_file": {"token_file": str(tmp_path / "tokens")},
        "tls": {"tls": {"certificate": str(pair.certificate), "key": str(pair.key)}},
        "allow_public": {"allow_public": True},
    }
    found = load_config(flags={"service": {"http": "0.0.0.0:4318", **guards[guard]}})

    assert found.service.http == "0.0.0.0:4318"


def test_the_guard_may_stand_in_another_layer(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "service: {http: '0.0.0.0:4318'}",
        {"OTEL_RELIABILITY_SERVICE_TOKEN": "from-a-secret-store"},
    )

    assert found.service.token == "from-a-secret-store"


@pytest.mark.parametrize("wrong", ["key", "client_ca"])
def test_files_of_tls_that_are_no_such_are_refused(tmp_path: Path, wrong: str) -> None:
    """A key of another certificate; signers that are none."""
    authority = Authority(tmp_path, "ours")
    pair = authority.issue("one")
    other = tmp_path / "other"
    other.write_text("nothing of the kind")
    tls = {"certificate": str(pair.certificate), "key": str(pair.key)}
    tls[wrong] = str(authority.issue("two").key if wrong == "key" else other)
    field = "certificate" if wrong == "key" else wrong
    with pytest.raises(ConfigurationError, match=rf"service\.tls\.{field}"):
        load_config(flags={"service": {"tls": tls}})


def test_the_schema_knows_every_setting_and_no_other() -> None:
    sections = SCHEMA["$defs"]

    assert sections["AssemblySettings"]["properties"]["linger"]["default"] == 2.0
    assert list(sections["LimitSettings"]["properties"]) == ["memory"]
    assert not any(section["additionalProperties"] for section in (SCHEMA, *sections.values()))


def test_every_setting_of_the_schema_has_a_word() -> None:
    fields = [
        field
        for part in (SCHEMA, *SCHEMA["$defs"].values())
        for field in part["properties"].values()
    ]

    assert all("description" in field or "$ref" in field for field in fields)
