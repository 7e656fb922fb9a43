"""`python -m otel_reliability.cli`."""

from __future__ import annotations

from otel_reliability.cli import main

if __name__ == "__main__":
    main()
