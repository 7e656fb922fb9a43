"""The command line, called as users call it but for the process."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from otel_reliability.cli.app import app


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *args: object) -> Done:
    capsys.readouterr()
    with pytest.raises(SystemExit) as raised:
        app([str(arg) for arg in args], prog_name="otel-reliability")
    out, err = capsys.readouterr()
    return Done(int(raised.value.code or 0), out, err)
