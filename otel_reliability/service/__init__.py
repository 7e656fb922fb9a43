"""The service: receives OTLP from a Collector or an SDK, and serves metrics, pages and an API.

A request goes one way: `http` or `grpc` → `intake` (size, budget, decoding) → `writer` (one thread
changes all state) → an answer. A request that is not accepted raises `Refused`, and `answers`
writes the reason in each protocol.
"""
