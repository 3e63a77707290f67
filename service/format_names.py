"""Names of the input formats, in `--format`, in the header `litehit-format` and in the setting of the topic."""

from __future__ import annotations

from enum import StrEnum


class FormatName(StrEnum):
    """One format each."""

    NATIVE = "native"
    TAIR = "tair"
    TAIR_PUBLISHER = "tair-publisher"
    MOONCAKE = "mooncake"
    BAILIAN = "bailian"
    WEKA = "weka"
    DYNAMO = "dynamo"
    LITELLM = "litellm"
    SGLANG = "sglang"


AUTO = "auto"
"""Of a file: recognise it from its first lines."""
