"""`python -m otel_reliability.demo`."""

from __future__ import annotations

from otel_reliability.cli.demo import command

if __name__ == "__main__":
    command()
