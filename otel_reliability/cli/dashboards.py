"""`otel-reliability dashboards`."""

from __future__ import annotations

from pathlib import Path

import click

from otel_reliability import dashboards
from otel_reliability.dashboards import Installation


@click.command("dashboards")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--datasource",
    default=dashboards.UID,
    show_default=True,
    metavar="UID",
    help="The uid of Grafana's Prometheus data source. Dashboards let their readers choose another; alerts do not.",
)
@click.option(
    "--datasource-name", metavar="NAME", help="Its name, as readers see it; the uid if not given.", default=None
)
@click.option(
    "--path",
    default=dashboards.PATH,
    show_default=True,
    metavar="PATH",
    help="Where Grafana will find DIR/grafana/dashboards.",
)
@click.option(
    "--runbooks",
    default=dashboards.RUNBOOK,
    show_default=True,
    metavar="URL",
    help="Where you will keep alerts.md: every alert links to its section there.",
)
@click.option("--force", is_flag=True, help="Overwrite what is there.")
def command(
    directory: Path, datasource: str, datasource_name: str | None, path: str, runbooks: str, *, force: bool
) -> None:
    """Write the Grafana dashboards and the alerts to a folder.

    \b
      grafana/dashboards/         Fleet and Agent, for Grafana 10 to 13; they can be imported by hand, too
      grafana/provisioning/       provisioning of the dashboards, and the alerts as Grafana alerts
      prometheus/rules/           the same alerts as Prometheus rules: use one of the two
      alerts.md                   what each alert means, and what to do

    \b
      otel-reliability dashboards observability --datasource P1809F7CD0C75ACF3
      promtool check rules observability/prometheus/rules/*.yaml

    They query the metrics of the service and of the span processor, in every deployment mode.
    """
    installation = Installation(datasource, datasource_name or datasource, path, runbooks)
    for written in dashboards.write(directory, installation, force=force):
        click.echo(written)
