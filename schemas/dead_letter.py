"""Dead letters: records that could not become a fact, kept whole with the reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

FORMAT_HEADER = "litehit-format"
"""Of a request record: the format of its value."""

INSTANCE_HEADER = "litehit-instance"
"""Of a request record: its instance, whatever the value states; empty: its publisher found none, so it is no fact."""

SOURCE_HEADER = "litehit-source"
REASON_HEADER = "litehit-reason"
ERROR_HEADER = "litehit-error"
TRUNCATED_HEADER = "litehit-truncated"


class Reason(StrEnum):
    """Stable codes of the header `litehit-reason`."""

    EMPTY_VALUE = "empty-value"
    MALFORMED_JSON = "malformed-json"
    MALFORMED_PROTOBUF = "malformed-protobuf"
    UNKNOWN_TYPE = "unknown-type"
    INVALID_FIELD = "invalid-field"
    KEY_TYPE = "key-type"
    KEY_OUT_OF_RANGE = "key-out-of-range"
    LENGTH_MISMATCH = "length-mismatch"
    INSTANCE_MISSING = "instance-missing"
    INSTANCE_FIELD_MISSING = "instance-field-missing"
    UNKNOWN_INSTANCE = "unknown-instance"
    TIME_MISSING = "time-missing"
    UNKNOWN_FORMAT = "unknown-format"
    TRACE_BLOCK_MISMATCH = "trace-block-mismatch"
    REGISTRATION_REFUSED = "registration-refused"
    REGISTRATION_NEEDS_RESET = "registration-needs-reset"


class DeadLetterHeaders(BaseModel):
    """Headers of a dead letter; the record's key and value are the original's, its original headers follow these."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    source: Annotated[str, Field(alias=SOURCE_HEADER, description="<topic>/<partition>/<offset> of the request")]
    reason: Annotated[Reason, Field(alias=REASON_HEADER, description="a stable code")]
    error: Annotated[str, Field(alias=ERROR_HEADER, description="names the field, the value and what to do")]
    truncated: Annotated[
        int | None,
        Field(
            alias=TRUNCATED_HEADER,
            description="bytes of the original value, where it was too large for the dead-letter topic and is cut",
        ),
    ] = None
