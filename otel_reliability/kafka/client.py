"""The Kafka client library, which brings no types along: what we use of it, by name."""

from __future__ import annotations

import importlib
from typing import Any, Final, cast

_library: Final = cast("Any", importlib.import_module("confluent_kafka"))
_admin: Final = cast("Any", importlib.import_module("confluent_kafka.admin"))

TopicCollection: Final[Any] = _library.TopicCollection
KafkaError: Final[Any] = _library.KafkaError
KafkaException: Final[type[Exception]] = _library.KafkaException
TopicPartition: Final[Any] = _library.TopicPartition
AdminClient: Final[Any] = _admin.AdminClient
