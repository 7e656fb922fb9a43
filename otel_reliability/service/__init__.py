"""The door out of the agents' processes: OTLP in from a Collector or an SDK, metrics and pages out.

A request goes one way: `http` or `grpc` → `intake` (size, room, decoding) → `writer` (one thread owns all state) → an answer.
What cannot be taken is `Refused`, and each door says so in the words of its protocol (`answers`).
"""
