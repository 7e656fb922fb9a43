"""The stages of the single process on Kafka: spans → run records, keyed by trace; run records →
readings, keyed by agent.

Each stage is any number of equal workers in a consumer group (`assemble_stage`, `aggregate_stage`).
The state of a partition (`traces`, `readings`) is plain code over a key-value store: it knows no
broker, and its time is that of the partition's messages. `worker` puts it on Quix Streams, which
assigns partitions, keeps the stores and makes every step happen once. Conventions, assembly,
windows and metrics are those of the single process, unchanged.
"""
