"""`otel-reliability mcp`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from otel_reliability.cli.options import Choice, baseline_option, of_recordings
from otel_reliability.errors import ConfigurationError
from otel_reliability.mcp import Recordings, RunningService, Source, server_of
from otel_reliability.service.addresses import parse_address


@click.command("mcp")
@click.option(
    "--url", metavar="URL", help="Answer from a running service instead: its UI's address."
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --url: file whose first line is the service's token.",
)
@baseline_option("An earlier recording that compare_versions compares with; repeatable.")
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Listen there for streamable HTTP (path /mcp) instead of standard input.",
)
@partial(of_recordings, required=False)
def command(
    choice: Choice,
    url: str | None,
    token_file: Path | None,
    baseline: tuple[str, ...],
    http: str | None,
) -> None:
    """Answer an assistant's questions about agents, by the Model Context Protocol: list the agents,
    explain a score, name unusual runs, show what changed, compare versions, check a target. It only
    reads.

    \b
      otel-reliability mcp spans.jsonl                                 over recordings, read again when they change
      otel-reliability mcp --baseline last-week.jsonl this-week.jsonl
      otel-reliability mcp --url http://127.0.0.1:8080                 over a running service
      otel-reliability mcp --http 127.0.0.1:8765 spans.jsonl
    """
    if bool(choice.files) == bool(url) or "-" in choice.files:
        raise click.UsageError("name recordings (FILE..., not -) or a service (--url URL).")
    server = server_of(_source(choice, url, token_file, baseline))
    if http is None:
        server.run()
        return
    try:
        address = parse_address(http)
    except ValueError:
        address = None
    if address is None or address.public:
        remedy = (
            "write it like 127.0.0.1:8765; for others, put a proxy that asks who they are before it"
        )
        raise ConfigurationError(
            "--http", http, "an address that only this machine reaches", remedy
        )
    server.run(
        "streamable-http",
        host=address.host,
        port=address.port,
        stateless_http=True,
        json_response=True,
    )


def _source(
    choice: Choice, url: str | None, token_file: Path | None, baseline: tuple[str, ...]
) -> Source:
    if url is None:
        return Recordings(
            choice.files,
            choice.settings,
            agents=choice.agents,
            since_ns=choice.since_ns,
            baseline=baseline,
        )
    return RunningService(
        url,
        None
        if token_file is None
        else token_file.read_text(encoding="utf-8").split("\n")[0].strip(),
    )
