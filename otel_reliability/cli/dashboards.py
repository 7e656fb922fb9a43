"""`otel-reliability dashboards`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from otel_reliability import dashboards
from otel_reliability.config import Settings
from otel_reliability.dashboards import Installation
from otel_reliability.service.config_file import load_config


@click.command("dashboards")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--datasource",
    default=dashboards.UID,
    show_default=True,
    metavar="UID",
    help=(
        "The uid of Grafana's Prometheus data source. Dashboards let their readers choose "
        "another; alerts do not."
    ),
)
@click.option(
    "--runbooks",
    default=dashboards.RUNBOOK,
    show_default=True,
    metavar="URL",
    help="Where you will keep alerts.md: every alert links to its section there.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=(
        "Settings file; with `ui.url` in it (or OTEL_RELIABILITY_UI_URL), alerts link to the "
        "UI and to its runbook. The error budgets of the periods of its `objectives` are recorded."
    ),
)
@click.option("--force", is_flag=True, help="Overwrite what is there.")
def command(
    directory: Path, datasource: str, runbooks: str, config: Path | None, *, force: bool
) -> None:
    """Write the Grafana dashboards and the alerts to a folder.

    \b
      grafana/dashboards/         Fleet and Agent, for Grafana 10 to 13; they can be imported by hand, too
      grafana/provisioning/       the alerts as Grafana alerts, and the dashboards from /etc/grafana/dashboards
      prometheus/rules/           the same alerts as Prometheus rules: use one of the two
      alerts.md                   what each alert means, and what to do

    \b
      otel-reliability dashboards observability --datasource P1809F7CD0C75ACF3
      promtool check rules observability/prometheus/rules/*.yaml

    They query the metrics of the service and of the span processor, in every deployment mode.
    """
    settings = (
        Settings.from_environment(os.environ) if config is None else load_config(config, os.environ)
    )
    periods = tuple(one.period for one in settings.objectives)
    installation = Installation(datasource, runbooks, settings.ui.url, periods)
    for written in dashboards.write(directory, installation, force=force):
        click.echo(written)
