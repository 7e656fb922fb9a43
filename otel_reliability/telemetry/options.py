"""Settings of a door: from the environment, over them what code or the SDK's declarative configuration gives."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError

_logger = logging.getLogger("otel_reliability")


def settings_from(options: Mapping[str, object]) -> Settings | None:
    """The settings of a door; None where nobody says anything, so that it shares those of the door before it.

    `window` is short for one window of so many runs. What code gives and cannot be is raised, as at any constructor. What
    the environment gives and cannot be is logged, and the defaults stand: a misspelt variable must not keep a program from
    starting.

    >>> settings_from({"window": 50}).windows
    (WindowSettings(name='recent', last=50, period=None),)
    """
    given = dict(options)
    if "window" in given:
        given["windows"] = [{"name": "recent", "last": given.pop("window")}]
    base = _from_environment()
    if not given:
        return base
    return Settings.from_mapping(given, base=base)


def _from_environment() -> Settings | None:
    try:
        found = Settings.from_environment(os.environ)
    except ConfigurationError as error:
        _logger.error("%s No setting is taken from the environment.", error)  # noqa: TRY400  the message says it all
        return None
    return None if found == Settings() else found
