"""The commands, without a broker: settings from file, environment and flags, and what `serve
--check` prints of them.
"""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from otel_reliability.cli.app import app

FILE = """
hash_key: 00112233445566778899aabbccddeeff
kafka:
  brokers: one:9092, two:9092
  logs: otlp_logs
  client: {security.protocol: SASL_SSL, sasl.password: hidden}
"""


def test_serve_check_says_what_workers_would_do(tmp_path: Path) -> None:
    (tmp_path / "workers.yaml").write_text(FILE)
    done = CliRunner().invoke(app, ["serve", "--check", "--config", str(tmp_path / "workers.yaml")])

    assert done.exit_code == 0
    assert "kafka   one:9092, two:9092, exactly-once" in done.output
    assert (
        "otel-reliability-assemble reads otlp_spans and otlp_logs, writes otel_reliability_runs"
        in done.output
    )
    assert "hidden" not in done.output


def test_serve_check_says_why_no_worker_would_start(tmp_path: Path) -> None:
    (tmp_path / "workers.yaml").write_text(FILE.replace("hash_key", "#"))
    keyless = CliRunner().invoke(
        app, ["serve", "--check", "--config", str(tmp_path / "workers.yaml")]
    )
    (tmp_path / "workers.yaml").write_text(FILE.replace("logs:", "log:"))
    misspelt = CliRunner().invoke(
        app, ["serve", "--check", "--config", str(tmp_path / "workers.yaml")]
    )

    assert (keyless.exit_code, misspelt.exit_code) == (2, 2)
    assert "hash_key: None is not a key that all workers share" in keyless.output
    assert "kafka.log: 'log' is not a setting; the nearest is logs" in misspelt.output


def test_a_transaction_lasts_longer_than_from_one_commit_to_the_next(tmp_path: Path) -> None:
    """Else the brokers would end it under the worker."""
    done = CliRunner().invoke(
        app, ["kafka", "assemble", "--brokers", "x:1", "--set", "kafka.commit=20s"]
    )

    assert done.exit_code == 2
    assert "kafka.transaction_timeout: 15.0 is not longer than commit (20 s)" in done.output
