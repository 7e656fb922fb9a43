"""A small fleet of agents under a real SDK: `otel-reliability demo`, or `python -m otel_reliability.demo`.

`stage` is where agents act, `fleet` who they are, `live` what a running process tells of them, `page` what is shown.
"""
