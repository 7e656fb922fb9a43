"""The native extension `otel-reliability-native`, which is optional: Python does the same work."""

from __future__ import annotations

import importlib
import logging
from typing import Any, Final

FITS: Final = 11
"""The version of what is passed to compiled modules and what comes back. They say it too, and are used where it is the same: one
that was built for another would take objects for what they are not.
"""

_logger = logging.getLogger("otel_reliability")


def load(name: str) -> Any:
    """Return a compiled module; None where it is not installed, cannot be loaded, or was built for another version.

    >>> load("no_such_module") is None
    True
    """
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001 (the extension is optional: no failure of it may reach the host)
        _logger.warning(
            "%s is not used, Python does its work: it cannot be loaded: %s: %s", name, type(error).__name__, error
        )
        return None
    if getattr(module, "FITS", None) != FITS:
        _logger.warning(
            "%s is not used, Python does its work: it was built for another version. Install otel-reliability-native again "
            "(pip install ./native), of the same version as otel-reliability.",
            name,
        )
        return None
    return module
