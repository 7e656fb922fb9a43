"""Settings of a processor or exporter: of the environment, overridden by code or the SDK's declarative configuration."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError

_logger = logging.getLogger("otel_reliability")


def settings_from(options: Mapping[str, object]) -> Settings | None:
    """Return the settings; None where none are given, so that those of an earlier processor apply.

    `window` is short for one window of so many runs. Invalid options raise `ConfigurationError`. Invalid variables are logged and
    ignored: a misspelt variable must not keep a program from starting.

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
