"""Workers on Kafka: how far behind they are, what they could not use, and what a take-over costs."""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About
from dashboards.board import Section
from dashboards.own.common import HERE, NOTHING, came, now
from dashboards.panels import Query
from dashboards.promql import sample_of
from otel_reliability.telemetry import names

NO_WORKER: Final = "No worker on Kafka tells of itself"


def kafka() -> Section:
    """Nothing is here where nobody works on Kafka."""
    return Section(
        "Workers on Kafka",
        [
            panels.over_time(
                "Behind",
                About(
                    "Messages that are not read yet, by topic, and of the partition that is furthest behind.",
                    "Near 0; after an outage, falling.",
                    "Rising for all: more workers, up to the number of partitions. For one partition: a hot agent, or a slow worker.",
                    NO_WORKER,
                ),
                Query(now(names.KAFKA_LAG, by="topic"), "{{topic}}"),
                Query(f"max by (topic) ({sample_of(names.KAFKA_LAG)}{{{HERE}}})", "{{topic}}, the worst partition"),
                size=(12, 8),
            ),
            panels.over_time(
                "Messages and records",
                About(
                    "Messages read in each interval, and records of runs told because of them, by change.",
                    "Closed and settled alike; few revised or withdrawn.",
                    "Nothing read while something is behind: `/readyz` of the workers says why.",
                    NO_WORKER,
                ),
                Query(came(names.KAFKA_MESSAGES, "topic", 'kind="records"'), "read from {{topic}}"),
                Query(came(names.KAFKA_RECORDS, "change"), "told: {{change}}"),
                size=(12, 8),
            ),
            panels.over_time(
                "Messages that could not be used",
                About(
                    "Messages laid aside in each interval, by reason.",
                    "None.",
                    "They are in kafka.dead_letters, with headers that say why: mend what sends them.",
                    NOTHING,
                ),
                Query(came(names.KAFKA_DEAD_LETTERS, "reason"), "{{reason}}"),
                bars=True,
                stacked=True,
                size=(8, 7),
            ),
            panels.over_time(
                "Came apart",
                About(
                    "What belongs together and cannot be joined where the key is the trace, by what it is.",
                    "No no_key and no other_key.",
                    "no_key, other_key: the exporter lacks partition_traces_by_id. Others: docs/scale tells what is not joined.",
                    NOTHING,
                ),
                Query(came(names.KAFKA_APART, "what"), "{{what}}"),
                bars=True,
                stacked=True,
                size=(8, 7),
            ),
            panels.over_time(
                "Starts and rebalances",
                About(
                    "How often partitions were given out anew, and a stage was started again, by why.",
                    "Only when you add or take away workers.",
                    "brokers, topic, denied: the log says which, with the remedy. Rebalances without end: a worker that does not keep up.",
                    NOTHING,
                ),
                Query(came(names.KAFKA_REBALANCES), "rebalances"),
                Query(came(names.KAFKA_STARTS, "reason"), "starts: {{reason}}"),
                bars=True,
                stacked=True,
                size=(8, 7),
            ),
            panels.over_time(
                "The last take-over",
                About(
                    "Seconds until all partitions were at work again, the slowest of the workers.",
                    "Seconds; with thousands of agents a minute, in which work goes on.",
                    "Fewer partitions a worker: add workers. Does kafka.state stand on a disk that stays?",
                    NO_WORKER,
                ),
                Query(f"max({sample_of(names.KAFKA_RESTORE)}{{{HERE}}})", "slowest"),
                unit="s",
                size=(8, 7),
            ),
            panels.over_time(
                "State on disk",
                About(
                    "Bytes of state on the disks of all workers.",
                    "Level, once assembly.remember has passed.",
                    "Growing: do roots arrive? Lower assembly.remember, or add workers.",
                    NO_WORKER,
                ),
                Query(now(names.KAFKA_STATE), "state"),
                unit="bytes",
                size=(8, 7),
            ),
            panels.over_time(
                "Traces",
                About(
                    "Traces that are remembered, and those of them in memory.",
                    "Level, once assembly.remember has passed.",
                    "Open ones that grow without end: roots do not arrive.",
                    NO_WORKER,
                ),
                Query(now(names.KAFKA_TRACES, by="state"), "{{state}}"),
                size=(8, 7),
            ),
        ],
    )
