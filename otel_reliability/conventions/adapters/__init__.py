"""One file per family of instrumentations; the table of them
is in `otel_reliability.conventions`.
"""
