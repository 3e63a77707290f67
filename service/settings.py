"""Settings of every role: one frozen model, read from LITEHIT_* variables and the command line's options."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from litehit.errors import OptionError
from litehit.repeats import MAX_REPEATS_WINDOW
from litehit.targets import Routing
from service.format_names import FormatName
from service.instance_template import InstanceTemplate

KAFKA_LOGGER = "librdkafka"
"""Name of the logger that Kafka's client library writes to."""

PositiveInt = Annotated[int, Field(ge=1)]
PositiveSeconds = Annotated[float, Field(gt=0)]


MAX_BATCH_RECORDS = 10_000
"""A micro-batch's records at most, so that a verification knows how far back repeats may lie."""


def _template(text: str) -> str:
    try:
        return InstanceTemplate.parse(text).text
    except OptionError as error:
        raise ValueError(str(error)) from None


class Role(StrEnum):
    """What a process does; one process may do several."""

    LANES = "lanes"
    ARCHIVE = "archive"
    API = "api"


class ProcessingGuarantee(StrEnum):
    """How a lane worker hands over a micro-batch."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


def _lower(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text


class LogFormat(StrEnum):
    """How log lines are written."""

    CONSOLE = "console"
    JSON = "json"


class Settings(BaseSettings):
    """Every setting, its default and its environment variable (`LITEHIT_` and the upper-case name)."""

    model_config = SettingsConfigDict(env_prefix="LITEHIT_", frozen=True, extra="forbid")

    # Where things are.
    bootstrap: str | None = Field(default=None, description="Kafka's bootstrap servers, HOST:PORT[,HOST:PORT…]")
    embedded: bool = Field(default=False, description="run on, or find, the embedded broker instead of bootstrap")
    registry: Path | None = Field(default=None, description="registry file (YAML)")
    store: str = Field(default="./litehit-data", description="a folder, s3://, gs:// or az://")
    host: str = Field(default="127.0.0.1", description="address the HTTP API listens on")
    port: Annotated[
        int,
        Field(
            ge=0,
            le=65535,
            description="port of the HTTP API; 0 picks a free one. "
            "A process without the role api serves probes and metrics, where a port is named",
        ),
    ] = 8080

    # Topics.
    requests_topic: str = Field(default="litehit.requests", description="topic that is read")
    requests_format: FormatName = Field(
        default=FormatName.NATIVE, description="format of the records there whose header `litehit-format` names none"
    )
    instance_template: Annotated[str, AfterValidator(_template)] | None = Field(
        default=None,
        description="build instance ids from fields of the records, such as {model}/{tenant}; "
        "default: a record states its instance",
    )
    facts_topic: str = Field(default="litehit.facts", description="topic of the facts, with as many partitions")
    dead_letters_topic: str = Field(default="litehit.dead-letters", description="topic of the records without a fact")
    create_topics: bool | None = Field(
        default=None, description="create absent topics at start; default: only on the embedded broker"
    )
    partitions: PositiveInt = Field(default=4, description="partitions of the topics that are created")
    replication_factor: PositiveInt = Field(default=3, description="replication factor of topics that are created")

    # Lanes.
    group_id: str = Field(default="litehit-lanes", description="consumer group of the lane workers")
    transactional_id: str = Field(
        default="litehit-lanes-0", description="one stable id for each lanes process; never shared by two"
    )
    processing_guarantee: ProcessingGuarantee = Field(
        default=ProcessingGuarantee.EXACTLY_ONCE, description="the embedded broker always runs at_least_once"
    )
    fanout_all_instances: bool = Field(
        default=False,
        description="each request goes to every instance registered by exact id, whichever it names; only where "
        "the requests topic has one partition",
    )
    override_instance_id: str | None = Field(
        default=None,
        description="each request goes to this instance, whichever it names; only where the requests topic has one "
        "partition",
    )
    batch_records: Annotated[int, Field(ge=1, le=MAX_BATCH_RECORDS)] = Field(
        default=2000, description="records of a micro-batch"
    )
    batch_bytes: PositiveInt = Field(
        default=32 * 2**20, description="keys and values of a micro-batch; a larger record is one by itself"
    )
    batch_seconds: PositiveSeconds = Field(default=0.05, description="how long a micro-batch waits to fill")
    transaction_timeout_seconds: PositiveSeconds = Field(
        default=10.0, description="after so long the broker aborts what a dead process left open"
    )
    dead_letter_max_bytes: PositiveInt = Field(
        default=1_000_000 + 40_000,
        description="key, value and headers of a dead letter; a longer value is cut and flagged. "
        "Keep it under the dead-letter topic's max.message.bytes",
    )
    dead_letter_max_consecutive: Annotated[int, Field(ge=0)] = Field(
        default=1000, description="more dead letters in a row stop their lane; 0: no limit"
    )
    dead_letter_max_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="a larger share of dead letters in dead_letter_window stops their lane; 1: no limit"
    )
    dead_letter_window: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=10_000, description="requests of a lane over which dead_letter_max_share is judged"
    )
    repeats_window: Annotated[int, Field(ge=0, le=MAX_REPEATS_WINDOW)] = Field(
        default=0,
        description="a request whose trace id is among so many last ones of its instance is ignored as a producer's "
        "retry; 0: none is",
    )
    snapshot_seconds: PositiveSeconds = Field(
        default=60.0, description="age at which a lane's caches are saved again, if they have changed"
    )
    snapshot_records: PositiveInt = Field(
        default=1_000_000, description="records after which they are saved earlier than that"
    )
    snapshot_deadline_seconds: PositiveSeconds = Field(
        default=10.0, description="how long a lane that is given up may take to save its caches"
    )

    # Archive.
    archive_group_id: str = Field(default="litehit-archive", description="group that shows the archiver's lag")
    segment_rows: PositiveInt = Field(default=1_000_000, description="facts of a segment")
    segment_bytes: PositiveInt = Field(default=64 * 2**20, description="bytes of a segment's facts as they came in")
    segment_seconds: PositiveSeconds = Field(default=60.0, description="age at which an open segment is published")
    accept_gap: bool = Field(
        default=False,
        description="go on where facts expired before they were archived; their segment records what is missing",
    )
    upkeep_seconds: PositiveSeconds = Field(
        default=60.0, description="time between two looks of the archive for segments to merge or to remove"
    )
    compact_rows: Annotated[int, Field(ge=0)] = Field(
        default=2**20,
        description="facts that merged segments have at most, but for the last one merged; rounded down to a power of "
        "two; 0: none are merged",
    )
    compact_parts: Annotated[int, Field(ge=2)] = Field(
        default=8, description="so many consecutive segments are worth merging into one"
    )
    compact_after_seconds: Annotated[float, Field(ge=0)] = Field(
        default=300.0, description="how long a segment must have been seen in the store before it is merged"
    )
    retention_seconds: PositiveSeconds | None = Field(
        default=None,
        description="facts that came into the store longer ago are removed, whole segments, oldest first; "
        "default: all are kept",
    )

    # API.
    window_rows: PositiveInt = Field(
        default=5_000_000, description="facts that one call may read from segments for the edges of a window"
    )
    index_dir: Path | None = Field(
        default=None,
        description="folder of the index's own files, which are made again where they are not there; "
        "default: `index` in the store's folder, else below ~/.cache/litehit",
    )
    follow_seconds: PositiveSeconds = Field(default=2.0, description="time between two looks of the API at the store")

    # Clients and logs.
    kafka: dict[str, str] = Field(
        default_factory=dict,
        description="JSON object of further librdkafka properties for every client, such as security.protocol",
    )
    log_format: LogFormat = Field(default=LogFormat.CONSOLE, description="console or json, to stderr")
    log_level: Annotated[str, BeforeValidator(_lower), Field(pattern="^(debug|info|warning|error)$")] = Field(
        default="info", description="debug, info, warning or error"
    )

    @model_validator(mode="after")
    def _one_broker(self) -> Settings:
        if self.embedded and self.bootstrap is not None:
            raise ValueError(f"bootstrap {self.bootstrap!r} and embedded exclude each other; give one of them")
        return self

    @model_validator(mode="after")
    def _one_routing(self) -> Settings:
        _ = self.routing
        return self

    @property
    def routing(self) -> Routing:
        """Whether requests go to other instances than the one they name."""
        return Routing(self.fanout_all_instances, self.override_instance_id)

    @property
    def at_least_once(self) -> bool:
        """Whether batches are handed over without transactions; the embedded broker has none."""
        return self.embedded or self.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE

    @property
    def topics(self) -> tuple[str, str, str]:
        """Requests, facts and dead-letters topic."""
        return self.requests_topic, self.facts_topic, self.dead_letters_topic

    def client_config(self, bootstrap: str, **properties: Any) -> dict[str, Any]:
        """librdkafka properties of a client: the service's own, then the operator's."""
        # Warnings and worse; librdkafka tells each closed connection at its default level.
        own = {"bootstrap.servers": bootstrap, "log_level": 4, "logger": logging.getLogger(KAFKA_LOGGER)}
        return {**own, **properties, **self.kafka}
