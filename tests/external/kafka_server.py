"""A Kafka server of one node for tests, in a process of its own.

Its packages come from Maven Central. Without Java 17 or Maven the tests are skipped, unless TEST_KAFKA_REQUIRED is set.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from external.neo4j_server import missing
from external.ports import free_port

REQUIRED = "TEST_KAFKA_REQUIRED"
_SOURCES = Path(__file__).parent / "java" / "kafka"
# The first start loads the packages; after that it is the start of a server on a busy machine.
_SECONDS = 300.0


def or_skip() -> None:
    """Skip the test where the server cannot run; fail it where that is not allowed."""
    lack = missing().replace("Neo4j", "Kafka")
    if lack and os.environ.get(REQUIRED):
        pytest.fail(f"{lack}, and {REQUIRED} is set")
    if lack:
        pytest.skip(lack)


class KafkaBroker:
    """A server with its data in a folder and its ports, which stay the same whenever it runs."""

    def __init__(self, folder: Path) -> None:
        self._properties = folder / "server.properties"
        self._log = folder / "kafka.log"
        self._broker, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{self._broker}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(folder / "kafka"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            # A test waits for no group to gather.
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "true",
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    @contextmanager
    def running(self) -> Iterator[AdminClient]:
        """Runs while the context is open, then is killed; what it stored stays."""
        # It ends when its standard input does, so with this process, however that ends.
        command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", _packages()]
        command += [str(_SOURCES / "KafkaServer.java"), str(self._properties)]
        end = time.monotonic() + _SECONDS
        with self._log.open("a") as log:
            while True:
                said = log.seek(0, os.SEEK_END)
                with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log) as server:
                    try:
                        admin = self._wait(server, said, end)
                        if admin is not None:
                            yield admin
                            return
                    finally:
                        server.kill()
                # Its port may be that of another program's connection for a while.
                assert time.monotonic() < end, self._log.read_text()[-2_000:]
                time.sleep(1)

    def _wait(self, server: subprocess.Popen[bytes], said: int, end: float) -> AdminClient | None:
        """Wait until it answers; None if it ended. Its log was so long when it started."""
        # Before that, answers are errors that tests would have to expect.
        while server.poll() is None and b"ready\n" not in self._log.read_bytes()[said:] and time.monotonic() < end:
            time.sleep(0.2)
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        while server.poll() is None:
            try:
                if admin.list_topics(timeout=5).brokers:
                    return admin
            except KafkaException:
                if time.monotonic() > end:
                    raise
        return None


def create_topic(admin: AdminClient, topic: str, partitions: int = 1) -> None:
    """Create a topic, and wait until there is one."""
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result()


@cache
def _packages() -> str:
    with tempfile.TemporaryDirectory(prefix="astrocyte-kafka-") as folder:
        packages = Path(folder) / "packages"
        command = ["mvn", "-q", "-B", "-f", str(_SOURCES / "pom.xml")]
        command += ["dependency:build-classpath", f"-Dmdep.outputFile={packages}"]
        subprocess.run(command, check=True, timeout=_SECONDS)
        return packages.read_text()
