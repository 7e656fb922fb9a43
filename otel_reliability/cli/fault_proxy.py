"""`otel-reliability fault-proxy`."""

from __future__ import annotations

import shutil
import sys

import click

from otel_reliability.errors import ConfigurationError
from otel_reliability.experiments.fault_proxy import FaultProxy


@click.command("fault-proxy")
@click.argument("server", nargs=-1, required=True, metavar="-- SERVER...")
def command(server: tuple[str, ...]) -> None:
    """Start an MCP server whose tools fail where an experiment asks for it.

    \b
      otel-reliability fault-proxy -- npx my-mcp-server

    Name it in place of the server in the configuration of your agent. Outside of `experiment
    --fault` it passes every message unchanged. The server speaks MCP on standard input and output.
    """
    if shutil.which(server[0]) is None:
        raise ConfigurationError("SERVER", server[0], "a program", "give its path")
    sys.exit(FaultProxy(server, sys.stdin.buffer, sys.stdout.buffer).run())
