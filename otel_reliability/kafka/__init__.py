"""The stages of the single process on Kafka: spans → run records, keyed by trace; run records → readings, keyed by agent.

Each stage is any number of equal workers in a consumer group (`assemble`, `aggregate`). What a worker knows of a partition
(`traces`, `agents`) is plain code over a `Shelf`: it knows no broker, and its time is that of the partition's messages.
`worker` puts it on Quix Streams, which assigns partitions, keeps shelves and makes every step happen once. Conventions,
assembly, windows and metrics are those of the single process, unchanged.
"""
