"""Coverage of laws: it looks on while the first examples are tried. It makes each two to three times as slow, and hundreds more
of them reach next to nothing that the first did not.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

WATCHED: Final = 10
"""Examples of a law that coverage sees."""


@contextmanager
def first_examples(test: object, number: int = WATCHED) -> Generator[None]:
    """Let what traces this thread see so many examples of a test, and nothing of how they are drawn. Tests without examples, and
    processes that nobody traces, are left alone.

    The tracer pairs calls with returns, so it is put away and brought back within one frame.
    """
    tracer, handle = sys.gettrace(), getattr(test, "hypothesis", None)
    if tracer is None or handle is None:
        yield
        return
    law, left = handle.inner_test, number

    @functools.wraps(law)
    def seen(*given: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            return law(*given, **named)
        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            return law(*given, **named)
        finally:
            sys.settrace(before)

    handle.inner_test = seen
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
        handle.inner_test = law
