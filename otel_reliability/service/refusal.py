"""Why a request is not taken: the rules of the OTLP specification, as one table for both protocols."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from otel_reliability.errors import ReliabilityError

RETRY: Final = 1.0
"""Seconds after which a client that was refused for want of room may come again."""
RETRY_LATER: Final = 5.0
"""The same, where room will not come by itself at once: recovering, stopping, no disk."""


class Codes(NamedTuple):
    """How a refusal is told: the status of HTTP, and the code of gRPC, which `google.rpc.Status` bears too."""

    http: int
    rpc: int


class Problem(enum.Enum):
    """What is wrong. A client may send the same request again only after OVERLOAD.

    Source: OTLP specification 1.11, "Failures" of OTLP/gRPC and of OTLP/HTTP.
    """

    UNDECODABLE = Codes(400, 3)
    UNAUTHENTICATED = Codes(401, 16)
    UNKNOWN_SIGNAL = Codes(404, 12)
    METHOD = Codes(405, 12)
    TIMEOUT = Codes(408, 4)
    TOO_LARGE = Codes(413, 8)
    TYPE = Codes(415, 3)
    FAULT = Codes(500, 13)
    OVERLOAD = Codes(503, 14)


class Refused(ReliabilityError):
    """A request that is not taken.

    `reason` is the word it is counted by, `detail` says more to the client and holds nothing the client sent; `retry_after`
    is in seconds, None where coming again does not help.
    """

    def __init__(self, problem: Problem, reason: str, detail: str, *, retry_after: float | None = None) -> None:
        self.problem, self.reason, self.detail, self.retry_after = problem, reason, detail, retry_after
        super().__init__(f"{reason}: {detail}")


def bare(refusal: Refused) -> Refused:
    """The refusal without where it was raised: those frames hold the body, and who waits would hold them, in a circle."""
    refusal.__context__ = None
    return refusal.with_traceback(None)


def overload(reason: str, detail: str, *, retry_after: float = RETRY) -> Refused:
    """There is no room now; the client keeps the request and comes again.

    >>> overload("queue_full", "the queue is full").problem.value.http
    503
    """
    return Refused(Problem.OVERLOAD, reason, detail, retry_after=retry_after)
