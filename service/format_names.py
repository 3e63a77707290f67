"""Names of the input formats, in `--format`, in the header `litehit-format` and in the setting of the topic."""

from __future__ import annotations

from enum import StrEnum


class FormatName(StrEnum):
    """One format each."""

    NATIVE = "native"
    NATIVE_PROTOBUF = "native-protobuf"
    TAIR = "tair"
    TAIR_PUBLISHER = "tair-publisher"
    MOONCAKE = "mooncake"
    BAILIAN = "bailian"
    WEKA = "weka"
    DYNAMO = "dynamo"
    LITELLM = "litellm"
    SGLANG = "sglang"


LINE_FORMATS = tuple(name for name in FormatName if name is not FormatName.NATIVE_PROTOBUF)
"""Those that a file holds, a record a line; the other one is binary, and only on the topic."""

AUTO = "auto"
"""Of a file: recognise it from its first lines."""
