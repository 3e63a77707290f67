"""Sending a trace to the requests topic, record by record, in its order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from litehit.errors import OptionError, TraceError
from service.errors import PublishError
from service.event_json import event_json
from service.formats.base import FormatError, RecordContext, TraceFormat
from service.lag_window import LagWindow
from service.settings import Settings

EMBEDDED_WINDOW_BYTES = 2 * 2**20
"""The embedded broker keeps 5 MiB a partition and drops older records, read or not."""

_TIMEOUT_SECONDS = 10.0
_FLUSH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Published:
    """What was sent.

    Attributes:
        records: records that the topic has taken.
        unreadable: how many of them are not of the format and will be dead letters.
        first_problem: the first of those, with its line; None where there is none.
    """

    records: int
    unreadable: int
    first_problem: str | None


class Publisher:
    """Sends records; the key, an instance id, keeps an instance on one partition.

    The partitioner is murmur2, that of Kafka's own clients, so other taps put an instance on the same partition.

    Args:
        settings: topic, group and client properties.
        bootstrap: the broker's address.
        window_bytes: hold back while so many bytes are not yet consumed by the lanes; None: never.
    """

    def __init__(self, settings: Settings, bootstrap: str, window_bytes: int | None = None) -> None:
        self._topic = settings.requests_topic
        self._failure: str | None = None
        self._records = 0
        self._producer = Producer(
            settings.client_config(
                bootstrap,
                **{
                    "enable.idempotence": True,
                    "partitioner": "murmur2_random",
                    "linger.ms": 20,
                    "message.max.bytes": 16 * 2**20,  # the topic's own limit decides
                    "log_level": 2,
                },
            )
        )
        # Ask first: a producer alone would keep a wrong address to itself and wait.
        self._producer.list_topics(self._topic, timeout=_TIMEOUT_SECONDS)
        self._window: LagWindow | None = None
        if window_bytes is not None:
            self._group = Consumer(settings.client_config(bootstrap, **{"group.id": settings.group_id, "log_level": 2}))
            self._window = LagWindow(window_bytes, self._committed, wait=self._poll)

    def send(self, key: str | None, value: bytes) -> None:
        """Send one record; waits while the window is full."""
        size = len(value)
        if self._window is not None:
            self._window.make_room()
            self._window.sent(size)
        while True:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._delivered)
                break
            except BufferError:  # librdkafka's queue is full
                self._poll(0.1)
        self._poll(0)

    def wait(self, seconds: float) -> None:
        """Let time pass while deliveries go on."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._poll(left)

    def finish(self) -> int:
        """Wait until the topic has taken every record; how many that are.

        Raises:
            PublishError: it has not taken all of them.
        """
        left = self._producer.flush(_FLUSH_SECONDS)
        self._poll(0)
        if left:
            raise PublishError(f"{self._topic} has not taken {left} records within {_FLUSH_SECONDS:.0f} s")
        return self._records

    def _poll(self, seconds: float) -> None:
        self._producer.poll(seconds)
        if self._failure is not None:
            raise PublishError(self._failure)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = self._failure or f"{self._topic} refused a record: {error.str()}"
            return
        self._records += 1
        if self._window is not None:
            self._window.delivered(message.partition(), message.offset(), len(message.value() or b""))

    def _committed(self, partitions: Iterable[int]) -> Mapping[int, int]:
        asked = [TopicPartition(self._topic, partition) for partition in partitions]
        return {found.partition: found.offset for found in self._group.committed(asked, timeout=_TIMEOUT_SECONDS)}


def publish_trace(
    lines: Iterable[bytes],
    publisher: Publisher,
    trace_format: TraceFormat,
    *,
    source: str,
    instance_id: str | None = None,
    speed: float | None = None,
    limit: int | None = None,
    progress: Callable[[int], Any] = lambda _: None,
) -> Published:
    """Send a trace as request events, whatever its format.

    A write event is sent as it is, to be counted and ignored. So is a line that is not of the format, and it becomes a
    dead letter that says why; but where the very first one is not, the format is taken to be wrong and nothing is sent.

    Args:
        lines: one record each; blank ones are left out.
        publisher: where to.
        trace_format: how to read a line.
        source: name of the trace, for errors.
        instance_id: the instance of lines that name none.
        speed: so many times as fast as the trace's own times say; None: as fast as it goes.
        limit: at most so many records.
        progress: told the number of records sent.

    Raises:
        TraceError: the first line is not of the format.
        OptionError: speed is not a positive number.
    """
    if speed is not None and not 0 < speed < float("inf"):
        raise OptionError(f"speed {speed} is not a positive number; 1 keeps the trace's own pace")
    pace = None if speed is None else _Pace(speed, publisher)
    sent = unreadable = 0
    first_problem: str | None = None
    for number, line in enumerate(lines, start=1):
        if sent == limit:
            break
        if not line.strip():
            continue
        key, value = instance_id, line
        try:
            request = trace_format.parse(line, RecordContext(instance_id, number, time.time_ns()))
        except FormatError as error:
            if not sent:
                raise TraceError(source, number, f"{error}; is it of format {trace_format.name}?") from None
            unreadable += 1
            first_problem = first_problem or f"line {number}: {error}"
        else:
            if request is not None:
                key, value = request.instance_id, event_json(request)
                if pace is not None:
                    pace.wait_for(request.timestamp_ns)
        publisher.send(key, value)
        sent += 1
        progress(sent)
    return Published(publisher.finish(), unreadable, first_problem)


class _Pace:
    """Keeps the distances of a trace's times, divided by a factor."""

    def __init__(self, speed: float, publisher: Publisher) -> None:
        self._speed = speed
        self._publisher = publisher
        self._start: tuple[float, int] | None = None

    def wait_for(self, timestamp_ns: int) -> None:
        if self._start is None:
            self._start = time.monotonic(), timestamp_ns
        began, first_ns = self._start
        due = began + (timestamp_ns - first_ns) / 1e9 / self._speed
        self._publisher.wait(due - time.monotonic())
