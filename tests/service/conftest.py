"""Services as processes of their own (`serve`), and one that tests of the receivers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.running import Running, serving
from tests.service.served import serve

__all__ = ["serve"]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A service with small limits, for tests that leave nothing behind."""
    with serving(max_request=100_000, queue=200_000) as found:
        yield found
