"""What it costs, beside what the same work costs others. `python -m benchmarks` runs all, `python
-m benchmarks decode` one.
"""
