"""Run a real Kafka broker."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.real.ports import HOST, free_port
from tests.real.process import Process, Programs

HERE = Path(__file__).resolve().parent
CLUSTER = "b3RlbC1yZWxpYWJpbGl0eQ"  # any 16 bytes in base64

# One node is broker and controller. What Kafka copies three times in earnest exists once, and
# nobody waits for others.
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


class Kafka(Process):
    """One broker on a free port of loopback, `address` for clients; its store outlives `stop` and
    `kill`.
    """

    def __init__(self, java: Path, jars: Path, folder: Path) -> None:
        self.address = f"{HOST}:{free_port()}"
        program = [
            str(java),
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{jars}/*",
        ]
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}"
        properties = folder / "server.properties"
        properties.write_text(
            PROPERTIES.format(
                broker=self.address, controller=f"{HOST}:{free_port()}", store=folder / "store"
            )
        )
        super().__init__(
            "kafka",
            [*program, logging, "kafka.Kafka", properties],
            log=folder / "kafka.log",
            ready=lambda process: "Kafka Server started" in process.said(),
        )
        tool = (
            "kafka.tools.StorageTool",
            "format",
            "--cluster-id",
            CLUSTER,
            "--config",
            str(properties),
        )
        done = subprocess.run(
            [*program, *tool], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"


class Kafkas(Programs):
    """Makes brokers for one test."""

    def __init__(self, java: Path, jars: Path, folder: Path, running: ExitStack) -> None:
        super().__init__(folder, running)
        self._java = java
        self._jars = jars

    def __call__(self) -> Kafka:
        return self.started(Kafka(self._java, self._jars, self.new_folder("kafka")))
