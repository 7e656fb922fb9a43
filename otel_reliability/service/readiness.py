"""Whether the service can take requests now, and if not, why: what `/readyz`, the gRPC health service and every door ask."""

from __future__ import annotations

from typing import Final

from otel_reliability.service.refusal import RETRY_LATER, Refused, overload

RECOVERING: Final = "recovering"
"""The reason while state is being brought back: until then no number of ours is to be believed."""


class Readiness:
    """Reasons not to be ready. Parts set and clear their own; any thread may ask.

    >>> ready = Readiness()
    >>> ready.hold("recovering", "the journal is being read")
    >>> ready.reasons
    {'recovering': 'the journal is being read'}
    >>> ready.release("recovering")
    >>> ready.refusal() is None
    True
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    @property
    def reasons(self) -> dict[str, str]:
        """Why not, by the word it is counted by; empty when ready."""
        return dict(self._reasons)

    def hold(self, reason: str, detail: str) -> None:
        """From now on there is this reason."""
        self._reasons[reason] = detail

    def release(self, reason: str) -> None:
        """That reason is gone."""
        self._reasons.pop(reason, None)

    def refusal(self) -> Refused | None:
        """How to refuse a request now; None when ready."""
        for reason, detail in self.reasons.items():
            return overload(reason, detail, retry_after=RETRY_LATER)
        return None
