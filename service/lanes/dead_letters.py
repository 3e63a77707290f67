"""What becomes of a record that can't become a fact."""

from __future__ import annotations

from schemas.dead_letter import ERROR_HEADER, REASON_HEADER, SOURCE_HEADER, TRUNCATED_HEADER, Reason
from service.records import Headers, OutputRecord, SourceRecord

_MAX_SENTENCE = 2000  # a sentence quotes the record's own strings, which may be as long as the record


def dead_letter(record: SourceRecord, reason: Reason, sentence: str, *, topic: str, max_bytes: int) -> OutputRecord:
    """The record's key, value and headers for the dead-letter topic, with the reason before them.

    Where key, value and headers together exceed `max_bytes`, the value is cut from its end and a header gives its
    original length; where even that is not enough, the last of the original headers go too.
    """
    key, value = record.key, record.value
    own = _own_headers(record, reason, sentence)
    headers = own + record.headers
    excess = _size(key, value, headers) - max_bytes
    if excess > 0:
        original = len(value or b"")
        own += ((TRUNCATED_HEADER, str(original).encode()),)
        kept = list(record.headers)
        while kept and _size(key, None, (*own, *kept)) > max_bytes:
            kept.pop()
        headers = (*own, *kept)
        room = max(0, max_bytes - _size(key, None, headers))
        value = value[:room] if value is not None else None
    return OutputRecord(topic, record.partition, key, value, headers, record.timestamp_ms or 0)


def _own_headers(record: SourceRecord, reason: Reason, sentence: str) -> Headers:
    if len(sentence) > _MAX_SENTENCE:
        sentence = f"{sentence[:_MAX_SENTENCE]}…"
    return (
        (SOURCE_HEADER, record.source.encode()),
        (REASON_HEADER, reason.value.encode()),
        (ERROR_HEADER, sentence.encode(errors="backslashreplace")),
    )


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    return len(key or b"") + len(value or b"") + sum(len(name) + len(content or b"") for name, content in headers)
