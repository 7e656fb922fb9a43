"""Trace stores → OTLP-JSON: `fetch` lists the traces of a period and reads each whole.

One file per store. `table.STORES` has what differs between them; `client` speaks HTTP for all.
"""
