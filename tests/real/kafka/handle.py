"""Run a real Kafka broker."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.ports import HOST, free_port
from tests.real.process import Process

HERE = Path(__file__).resolve().parent
CLUSTER = "b3RlbC1yZWxpYWJpbGl0eQ"  # any 16 bytes in base64

# One node is broker and controller. What Kafka copies three times in earnest exists once, and nobody waits for others.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
listeners=PLAINTEXT://{broker},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{broker}
controller.listener.names=CONTROLLER
log.dirs={store}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
num.partitions=4
log.segment.bytes=16777216
"""


class ToolFailed(AssertionError):
    """One of Kafka's own tools ended with an error."""


class Kafka(Process):
    """One broker on a free port of loopback, `address` for clients; its store outlives `stop`, `kill` and `restart`."""

    def __init__(self, java: Path, jars: Path, folder: Path) -> None:
        self.address = f"{HOST}:{free_port()}"
        self._java = [str(java), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}"
        properties = folder / "server.properties"
        properties.write_text(
            PROPERTIES.format(broker=self.address, controller=f"{HOST}:{free_port()}", store=folder / "store")
        )
        super().__init__(
            "kafka",
            [*self._java, logging, "kafka.Kafka", properties],
            log=folder / "kafka.log",
            ready=lambda process: "Kafka Server started" in process.said(),
        )
        self.tool("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER, "--config", str(properties))

    def tool(self, name: str, *arguments: str) -> str:
        """Run one of Kafka's own tools by its class and return what it prints."""
        command = [*self._java, name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise ToolFailed(f"{name} {' '.join(arguments)}: exit code {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def create_topic(self, name: str, *, partitions: int = 1, settings: Sequence[str] = ()) -> None:
        """Make a topic; `settings` as Kafka spells them: `retention.ms=1000`."""
        extra = [part for setting in settings for part in ("--config", setting)]
        shape = ("--topic", name, "--partitions", str(partitions))
        topics = "org.apache.kafka.tools.TopicCommand"
        self.tool(topics, "--bootstrap-server", self.address, "--create", *shape, *extra)


@dataclass
class Kafkas:
    """Makes brokers for one test, and ends them with it."""

    java: Path
    jars: Path
    folder: Path
    running: ExitStack
    made: int = field(default=0, init=False)

    def __call__(self) -> Kafka:
        """Start a broker with an empty store."""
        self.made += 1
        folder = self.folder / f"kafka-{self.made}"
        folder.mkdir()
        broker = Kafka(self.java, self.jars, folder)
        self.running.callback(broker.stop)
        broker.start()
        return broker
