"""`otel-reliability fault-proxy`."""

from __future__ import annotations

import asyncio
import shutil
import sys

import click

from otel_reliability.errors import ConfigurationError
from otel_reliability.experiments.fault_proxy import FaultProxy
from otel_reliability.service.addresses import parse_address


@click.command("fault-proxy")
@click.argument("command", nargs=-1, required=True, metavar="-- SERVER...")
@click.option(
    "--url",
    metavar="URL",
    help="MCP server over HTTP; what follows -- is then the agent that uses it.",
)
@click.option(
    "--listen",
    default="127.0.0.1:8765",
    show_default=True,
    metavar="HOST:PORT",
    help="With --url: where the agent finds the server.",
)
def command(command: tuple[str, ...], url: str | None, listen: str) -> None:
    """Stand before an MCP server, and let its tools fail where an experiment asks for it.

    \b
      otel-reliability fault-proxy -- npx my-mcp-server
      otel-reliability fault-proxy --url http://127.0.0.1:8000/mcp -- python agent.py

    The first form starts a server on standard input and output: name it in place of the server in
    the configuration of your agent. The second starts your agent, which finds the server at
    --listen. Outside of `experiment --fault` every message passes unchanged.
    """
    if shutil.which(command[0]) is None:
        raise ConfigurationError("COMMAND", command[0], "a program", "give its path")
    if url is None:
        sys.exit(FaultProxy(command, sys.stdin.buffer, sys.stdout.buffer).run())
    try:
        address = parse_address(listen)
    except ValueError:
        address = None
    if address is None:
        raise ConfigurationError("--listen", listen, "HOST:PORT", "write it like 127.0.0.1:8765")
    from otel_reliability.experiments.http_fault_proxy import (  # noqa: PLC0415  only it needs aiohttp
        HttpFaultProxy,
    )

    sys.exit(asyncio.run(HttpFaultProxy(url, address).run(command)))
