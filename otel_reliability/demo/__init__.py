"""The demo: a recorded fleet of agents, and the service that finds the unreliable one
(`otel-reliability demo`).

`replay` sends the recording as if it happened now, `hosting` runs the service, `show` prints what
the service reports.
"""

from __future__ import annotations

from typing import Final

FILE: Final = "demo-spans.jsonl"
"""The file that the demo writes by default, which commands of the documentation read."""
