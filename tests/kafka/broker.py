"""A real Apache Kafka for tests: from Maven's jars, in KRaft mode, on loopback, in a folder of its own."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

POM = Path(__file__).with_name("pom.xml")
_RESOLVE_SECONDS = 300
_START_SECONDS = 60
_STOP_SECONDS = 30


class KafkaUnavailable(Exception):
    """This machine can't run Kafka; the message says what is missing."""


def kafka_jars() -> Path:
    """Folder of Kafka's jars; resolved once by Maven, kept in the user's cache folder by the pom's content."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise KafkaUnavailable(f"{tool} is not installed (Debian: apt-get install openjdk-17-jre-headless maven)")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "litehit-tests"
    jars = cache / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:16]}"
    if jars.is_dir():
        return jars
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        fresh = Path(folder) / "jars"
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=_RESOLVE_SECONDS, check=False)
        if result.returncode:
            raise KafkaUnavailable(f"Maven can't resolve {POM.name}: {result.stdout[-500:]}{result.stderr[-500:]}")
        try:
            fresh.rename(jars)
        except OSError:
            if not jars.is_dir():  # otherwise another test run was quicker
                raise
    return jars


def free_ports(count: int) -> list[int]:
    """Loopback ports that were free a moment ago, all different."""
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@dataclass(frozen=True)
class _Node:
    number: int
    port: int
    controller_port: int
    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "server.properties"


class KafkaCluster:
    """Kafka nodes, each broker and controller, started and stopped together or one by one.

    Args:
        jars: what `kafka_jars` gives.
        folder: logs and data go below it.
        nodes: how many; topics are replicated up to three times.
        properties: of every node, beside or instead of those that suit tests.
    """

    def __init__(
        self, jars: Path, folder: Path, nodes: int = 1, properties: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        self._jars = jars
        self._properties = properties
        ports = free_ports(2 * nodes)
        self._nodes = [
            _Node(number, ports[2 * number], ports[2 * number + 1], folder / f"node-{number}")
            for number in range(nodes)
        ]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._cluster_id = "L" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of every node."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self._nodes)

    def start(self) -> None:
        """Format and start every node, and wait until all of them serve."""
        for node in self._nodes:
            self._configure(node)
            self.start_node(node.number)
        self.await_nodes(len(self._nodes))

    def start_node(self, number: int) -> None:
        """Start a node's process; a node that ran before goes on with its data."""
        node = self._nodes[number]
        with (node.folder / "kafka.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                self._java("kafka.Kafka", str(node.config)), stdout=log, stderr=log, cwd=node.folder
            )

    def kill_node(self, number: int) -> None:
        """kill -9."""
        process = self._processes.pop(number)
        process.kill()
        process.wait(_STOP_SECONDS)

    def await_nodes(self, count: int) -> None:
        """Wait until so many nodes serve clients."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + _START_SECONDS
        while True:
            for number, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"Kafka ended with {process.returncode}:\n{self._log_tail(number)}")
            try:
                if len(admin.list_topics(timeout=1).brokers) >= count:
                    return
            except KafkaException:
                pass
            if time.monotonic() > deadline:
                raise RuntimeError(f"Kafka is not up within {_START_SECONDS} s:\n{self._log_tail(0)}")

    def stop(self) -> None:
        """Stop every node; one that does not end in time is killed."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_STOP_SECONDS)
        self._processes.clear()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _configure(self, node: _Node) -> None:
        node.folder.mkdir(parents=True)
        replicas = min(3, len(self._nodes))
        quorum = ",".join(f"{other.number}@127.0.0.1:{other.controller_port}" for other in self._nodes)
        properties = {
            "process.roles": "broker,controller",
            "node.id": node.number,
            "controller.quorum.voters": quorum,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": node.folder / "data",
            "auto.create.topics.enable": "false",
            "default.replication.factor": replicas,
            "min.insync.replicas": max(1, replicas - 1),
            "offsets.topic.num.partitions": 3,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": 3,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": max(1, replicas - 1),
            "group.initial.rebalance.delay.ms": 0,
            # Records of tests may bear times of years ago, and the broker looks for expired ones every five minutes.
            "log.retention.ms": -1,
            "num.network.threads": 2,
            "num.io.threads": 2,
            # A member or a transaction may be given up soon, where a client asks for it.
            "group.min.session.timeout.ms": 1000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
            **self._properties,
        }
        lines = (f"{name}={value}\n" for name, value in properties.items())
        node.config.write_text("".join(lines), encoding="utf-8")
        command = self._java("kafka.tools.StorageTool", "format", "-t", self._cluster_id, "-c", str(node.config))
        subprocess.run(command, check=True, capture_output=True, timeout=_START_SECONDS, cwd=node.folder)

    def _java(self, main: str, *arguments: str) -> list[str]:
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        return ["java", *options, "-cp", f"{self._jars}/*", main, *arguments]

    def _log_tail(self, number: int) -> str:
        return (self._nodes[number].folder / "kafka.log").read_text(encoding="utf-8", errors="replace")[-2000:]
