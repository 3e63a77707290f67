"""The embedded broker: librdkafka's mock cluster, a Kafka in this process that forgets everything at exit.

It has four partitions a topic and keeps 5 MiB of each, knows consumer groups and offsets, but neither transactions'
guarantees nor topic ids; so the service runs on it with at-least-once, and each start is a generation of its own.
"""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from service.errors import EmbeddedBrokerError

ADDRESS_FILE = "embedded-broker.json"
RETAINED_BYTES = 5 * 2**20
"""What the broker keeps of a partition; older records are forgotten, read or not."""

_START_SECONDS = 10.0
_CONNECT_SECONDS = 2.0


class EmbeddedAddress(BaseModel):
    """Content of the store's `embedded-broker.json` while the broker runs.

    Attributes:
        bootstrap: HOST:PORT of the broker.
        generation: new at each start; offsets mean something only within it.
        pid: the process that holds the broker.
        http: URL of that process's API; None where it serves none.
        most_facts: facts that its lanes make of one request at most; the topics must keep them all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap: str
    generation: str
    pid: int
    http: str | None = None
    most_facts: PositiveInt = 1


class EmbeddedBroker:
    """A broker on a free loopback port, between `start` and `stop` or as a context manager.

    Args:
        store: the store's folder, in which others find the address; made if absent.
        most_facts: see `EmbeddedAddress`.

    Attributes:
        died: where the one before it on the store was, if that ended without `stop`.
    """

    def __init__(self, store: Path, most_facts: int = 1) -> None:
        self._store = store
        self._most_facts = most_facts
        self.died: EmbeddedAddress | None = None
        self._client: Producer | None = None
        self._address: EmbeddedAddress | None = None

    def start(self) -> EmbeddedAddress:
        """Start, and write the address into the store.

        Raises:
            EmbeddedBrokerError: another process runs one on the same store, or the broker does not come up.
        """
        running = _read(self._store)
        if running is not None and _answers(running):
            raise EmbeddedBrokerError(
                f"process {running.pid} already runs an embedded broker on the store {self._store}; stop it, or use "
                f"another store (--store)"
            )
        self.died = running
        # The client is the broker: its mock cluster lives exactly as long as it does.
        self._client = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "embedded", "log_level": 3})
        try:
            brokers = self._client.list_topics(timeout=_START_SECONDS).brokers.values()
        except KafkaException as error:
            self._client = None
            raise EmbeddedBrokerError(f"the embedded broker did not start: {error.args[0].str()}") from error
        bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self._address = EmbeddedAddress(
            bootstrap=bootstrap, generation=uuid.uuid4().hex, pid=os.getpid(), most_facts=self._most_facts
        )
        _write(self._store, self._address)
        return self._address

    def announce(self, http: str) -> None:
        """Add the API's URL to the address in the store, once it is known."""
        self._address = self.address.model_copy(update={"http": http})
        _write(self._store, self._address)

    @property
    def address(self) -> EmbeddedAddress:
        """Where it runs.

        Raises:
            EmbeddedBrokerError: it does not.
        """
        if self._address is None:
            raise EmbeddedBrokerError("the embedded broker is not started")
        return self._address

    @property
    def bootstrap(self) -> str:
        """HOST:PORT."""
        return self.address.bootstrap

    @property
    def generation(self) -> str:
        """New at each start."""
        return self.address.generation

    def stop(self) -> None:
        """Forget everything; a broker that is not started stays so."""
        if self._address is not None and _read(self._store) == self._address:
            (self._store / ADDRESS_FILE).unlink(missing_ok=True)
        if self._client is not None:
            self._client.close()
        self._address = self._client = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def find_embedded(store: Path) -> EmbeddedAddress:
    """The embedded broker that runs on a store.

    Raises:
        EmbeddedBrokerError: none does.
    """
    address = _read(store)
    if address is None:
        raise EmbeddedBrokerError(
            f"no embedded broker runs on the store {store} ({ADDRESS_FILE} is not there); start it with "
            f"`litehit serve --embedded --store {store}`, or name Kafka (--bootstrap)"
        )
    if not _answers(address):
        raise EmbeddedBrokerError(
            f"{store / ADDRESS_FILE} names a broker at {address.bootstrap} (process {address.pid}) that does not "
            f"answer: it ended without removing the file; start it again: `litehit serve --embedded --store {store}`"
        )
    return address


def _write(store: Path, address: EmbeddedAddress) -> None:
    store.mkdir(parents=True, exist_ok=True)
    temporary = store / f".{ADDRESS_FILE}.{os.getpid()}"
    temporary.write_text(address.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    temporary.replace(store / ADDRESS_FILE)


def _read(store: Path) -> EmbeddedAddress | None:
    path = store / ADDRESS_FILE
    try:
        return EmbeddedAddress.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise EmbeddedBrokerError(f"{path} is no address of an embedded broker; remove it: {error}") from None


def _answers(address: EmbeddedAddress) -> bool:
    host, _, port = address.bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
