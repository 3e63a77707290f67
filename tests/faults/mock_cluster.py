"""librdkafka's mock cluster, told which requests to answer with which errors.

confluent-kafka offers the mock but none of its controls, so they are called in the library that it has loaded.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Self

import confluent_kafka


class Api(IntEnum):
    """Kafka's numbers of requests."""

    PRODUCE = 0
    OFFSET_COMMIT = 8
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


@cache
def _library() -> Any:
    assert confluent_kafka.libversion()  # loads it
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    path = next(line.split(maxsplit=5)[5] for line in maps if "librdkafka" in line)
    library = ctypes.CDLL(path)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, []),
        ("rd_kafka_conf_set", number, [pointer, text, text, text, ctypes.c_size_t]),
        ("rd_kafka_new", pointer, [number, pointer, text, ctypes.c_size_t]),
        ("rd_kafka_destroy", None, [pointer]),
        ("rd_kafka_mock_cluster_new", pointer, [pointer, number]),
        ("rd_kafka_mock_cluster_destroy", None, [pointer]),
        ("rd_kafka_mock_cluster_bootstraps", text, [pointer]),
        ("rd_kafka_mock_topic_create", number, [pointer, text, number, number]),
        ("rd_kafka_mock_broker_set_rtt", number, [pointer, ctypes.c_int32, number]),
        (
            "rd_kafka_mock_push_request_errors_array",
            None,
            [pointer, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(number)],
        ),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class MockCluster:
    """One broker that forgets everything at its end; it knows transactions, groups and no isolation.

    Attributes:
        bootstrap: its address.
    """

    def __init__(self) -> None:
        self._library = _library()
        reason = ctypes.create_string_buffer(512)
        configuration = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(configuration, b"log_level", b"0", reason, len(reason))
        self._client = self._library.rd_kafka_new(0, configuration, reason, len(reason))
        assert self._client, reason.value
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, 1)
        self.bootstrap: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic."""
        assert self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1) == 0

    def fail(self, api: Api, *codes: int) -> None:
        """Answer the next requests of a kind with these errors, one each."""
        array = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, api, len(codes), array)

    def answer_after(self, milliseconds: int) -> None:
        """Let every answer take so long from now on."""
        assert self._library.rd_kafka_mock_broker_set_rtt(self._cluster, 1, milliseconds) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)
