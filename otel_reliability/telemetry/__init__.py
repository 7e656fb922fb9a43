"""Numbers → OpenTelemetry: instruments, their one table of names, and what keeps
the host unharmed.
"""
