"""`otel-reliability serve`."""

from __future__ import annotations

import os

import click

from otel_reliability.cli.service_options import LOG_LEVEL, of_service
from otel_reliability.service.config_file import Config
from otel_reliability.service.log import log_to_stderr
from otel_reliability.service.serve import serve


@click.command("serve")
@of_service
@LOG_LEVEL
def command(config: Config, log_level: str) -> None:
    """Take OTLP from agents or a Collector, and give reliability metrics to Prometheus or any OTLP receiver.

    \b
      otel-reliability serve                                    on this machine only: OTLP on 4317 and 4318, /metrics on 9464
      otel-reliability serve --config service.yaml
      otel-reliability serve --push http://collector:4317       metrics out by OTLP too
      otel-reliability serve --http 0.0.0.0:4318 --token-file /run/secrets/token
      otel-reliability serve --state /var/lib/otel-reliability  nothing acknowledged is lost when it dies

    Settings come from the file, over it the environment (OTEL_RELIABILITY_…), over that these flags. SIGTERM ends it: what came
    is worked off and told once more. Without a state directory, what is open is lost when the process dies.
    """
    log_to_stderr(log_level)
    serve(config, os.environ)
