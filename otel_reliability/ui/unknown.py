"""Spans that no convention recognizes, as a running service meets them: samples, and the mapping that would recognize them."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final, NamedTuple

from otel_reliability.model.span import RawSpan
from otel_reliability.report.proposal import Proposal, Unknown, settings_lines

SAMPLES: Final = 50
"""Spans of one scope and one set of keys that are examined."""
MAX_KINDS: Final = 2_000
"""Pairs of a scope and a set of keys of which samples are examined."""


class UnknownLines(NamedTuple):
    """The scopes whose spans look like agents' work, and the lines of a settings file that would recognize them."""

    scopes: list[Unknown]
    mapping: str


class UnknownSpans:
    """Examines the first spans of each kind that no convention recognizes. Receivers call `wants`, on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._proposal = Proposal()
        self._samples: Counter[tuple[str, frozenset[str]]] = Counter()

    def wants(self, span: RawSpan) -> bool:
        """Examine a span, and return whether more like it are wanted."""
        kind = (span.scope, frozenset(span.attributes))
        with self._lock:
            if self._samples[kind] >= SAMPLES or (kind not in self._samples and len(self._samples) >= MAX_KINDS):
                return False
            self._samples[kind] += 1
            self._proposal.add(span)
            return True

    def lines(self) -> UnknownLines | None:
        """Return what was found; None where nothing looks like agents' work."""
        with self._lock:
            scopes = [found for found in self._proposal.scopes() if found.suspected]
            rules = self._proposal.rules()
        return UnknownLines(scopes, "\n".join(settings_lines(rules)) if rules else "") if scopes else None
