"""The demo: a recorded fleet of agents, and the service that finds the unreliable one
(`otel-reliability demo`).

`replay` sends the recording as if it happened now, `hosting` runs the service, `show` prints what
the service reports.
"""
