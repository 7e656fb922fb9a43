"""Units as bytes: a recording has hundreds of thousands, each of which is looked at twice, when it is found and at the end."""

from __future__ import annotations

import marshal
from typing import Any, Final

from otel_reliability.change.units import Steps, Unit

_PATH: Final = Unit._fields.index("path")


class Packer:
    """Writes units as bytes, a quarter of their size, and reads them back. Each path is kept once."""

    def __init__(self) -> None:
        self._numbers: dict[Steps | None, int] = {}
        self._paths: list[Steps | None] = []

    def pack(self, unit: Unit) -> bytes:
        """Its bytes, which this packer can read."""
        path = unit.path
        number = self._numbers.setdefault(path, len(self._paths))
        if number == len(self._paths):
            self._paths.append(path)
        return marshal.dumps((*unit[:_PATH], number, *unit[_PATH + 1 :]))

    def unpack(self, data: bytes) -> Unit:
        """The unit again."""
        fields: list[Any] = list(marshal.loads(data))  # noqa: S302 (what this process has just written)
        fields[_PATH] = self._paths[fields[_PATH]]
        return Unit._make(fields)
