"""The format `litellm`: what a LiteLLM callback logs of a request, with the hashes of its prefixes."""

from __future__ import annotations

from litehit.request import Request
from litehit.time_units import NS_PER_S
from service.formats.base import RecordContext, time_of
from service.formats.fast_object import Member
from service.formats.fields import integer, key_list, text, time_ns
from service.formats.object_format import ObjectFormat

_WANTED = {
    "id": Member.VALUE,
    "startTime": Member.VALUE,
    "prompt_tokens": Member.VALUE,
    "prefix_block_hashes": Member.HEXADECIMAL_KEYS,
}


class LitellmFormat(ObjectFormat):
    """Prefix keys of all blocks, the partial last one included: it is dropped once the registered block is known.

    `prompt_tokens` is the input length; without it each key counts as a full block's. `startTime` is in seconds since
    1970.
    """

    name = "litellm"
    wanted = _WANTED

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        fields = self._read(record)
        return Request(
            instance_id=self._naming.instance_of(None, fields, context),
            trace_id=text(fields, "id") or f"{self.name}-{context.position}",
            timestamp_ns=time_of(time_ns(fields, "startTime", NS_PER_S), context, "startTime"),
            block_keys=key_list(fields, "prefix_block_hashes", hexadecimal=True),
            input_token_len=integer(fields, "prompt_tokens", minimum=0, default=0),
            keys_rounded_up=True,
        )
