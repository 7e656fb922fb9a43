"""The fixture `workers`: workers on Kafka as processes of their own."""

from __future__ import annotations

from tests.kafka.workers import workers

__all__ = ["workers"]
