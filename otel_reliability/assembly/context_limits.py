"""How large a model's context window is: what the span says, what the settings say, what a table says."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from typing import Final

from otel_reliability.model.span import ModelFacts

_DATE: Final = re.compile(r"[-@](\d{4}-?\d{2}-?\d{2}|\d{6,8}|latest)$")
_MAX_CACHE: Final = 4096


class ContextLimits:
    """Context windows in tokens, by model name; None where nobody knows: then no pressure is claimed.

    The table of prices is the `prices` extra (genai-prices), read offline; without it, configuration and spans speak alone.

    >>> limits = ContextLimits({"gpt-4o*": 128_000})
    >>> limits.of(ModelFacts(model="gpt-4o-mini-2024-07-18")), limits.of(ModelFacts(model="house-model-1"))
    (128000, None)
    """

    def __init__(self, configured: Mapping[str, int]) -> None:
        self._configured = tuple(configured.items())
        self._known: dict[str, int | None] = {}

    def of(self, facts: ModelFacts) -> int | None:
        """The window of the model that answered, else of the model that was asked for."""
        return self.named(facts.model, facts.request_model) if facts.context_limit is None else facts.context_limit

    def named(self, *names: str | None) -> int | None:
        """The window of the first of these models of which one is known."""
        known = self._known
        for name in names:
            if name is not None:
                limit = known[name] if name in known else self._named(name)
                if limit is not None:
                    return limit
        return None

    def _named(self, name: str) -> int | None:
        found = next((limit for pattern, limit in self._configured if fnmatch.fnmatchcase(name, pattern)), None)
        if found is None:
            found = next((limit for form in spellings(name) if (limit := _from_table(form)) is not None), None)
        if len(self._known) < _MAX_CACHE:
            self._known[name] = found
        return found


def spellings(name: str) -> list[str]:
    """A model's name as tables may spell it: as it is, without the provider's prefix, without a date.

    >>> spellings("openai/gpt-4o-2024-08-06")
    ['openai/gpt-4o-2024-08-06', 'gpt-4o-2024-08-06', 'gpt-4o']
    """
    bare = name.rpartition("/")[2]
    forms = [name, bare, _DATE.sub("", bare)]
    return list(dict.fromkeys(forms))


def _from_table(name: str) -> int | None:
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 (an extra, and 0.2 s to import)
    except ImportError:
        return None
    try:
        _, model = get_snapshot().find_provider_model(name, None, None, None)
    except LookupError:
        return None
    window = model.context_window
    return window if isinstance(window, int) and window > 0 else None
