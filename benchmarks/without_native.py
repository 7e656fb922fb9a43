"""Run without the native extension, as where it is not installed: `python -m
benchmarks.without_native serve …`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from otel_reliability.service.native_decoder import load

EXTENSION: Final = "otel_reliability_native"
"""What the name of every compiled module begins with."""


class _Absent(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(EXTENSION):
            raise ModuleNotFoundError(f"{fullname} is blocked by the benchmark", name=fullname)
        return None


def block() -> None:
    """Make every import of the extension fail from now on in this process."""
    sys.meta_path.insert(0, _Absent())


def installed() -> bool:
    """Return whether the extension is installed and fits this version."""
    return load(EXTENSION) is not None


if __name__ == "__main__":
    block()
    from otel_reliability.cli import main

    main()
