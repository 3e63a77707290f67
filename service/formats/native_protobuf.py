"""The format `native-protobuf`: the request event in binary, see schemas/request_event.proto."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from litehit.curves import Int64Array
from litehit.registration import Registration
from litehit.request import Request
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext, shown, time_of
from service.formats.contents import Contents, Contexts
from service.formats.event_messages import read_messages
from service.formats.naming import STATED, Naming
from service.formats.registering import read_registration
from service.formats.registration_message import add_registration, stated_fields
from service.formats.trace_format import TraceFormat

_Field = descriptor_pb2.FieldDescriptorProto
_KEY_BYTES = 8
_WRITE, _REGISTER = 1, 2
_KEYS_FIELD = 5


def _message(package: str, *, packed_as_bytes: bool) -> Any:
    """The message class of the schema file.

    Args:
        package: two definitions of one message must not share a package.
        packed_as_bytes: declare the keys as bytes. A packed field is encoded as the bytes of its elements, so they
            become an array at once, and not integers one by one.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    event = file.message_type.add(name="RequestEvent")
    kinds = event.enum_type.add(name="Type")
    kinds.value.add(name="REQUEST", number=0)
    kinds.value.add(name="WRITE", number=_WRITE)
    kinds.value.add(name="REGISTER", number=_REGISTER)
    add_registration(event, f".{package}.RequestEvent")

    def add(name: str, number: int, kind: int, label: int = _Field.LABEL_OPTIONAL, **more: Any) -> None:
        event.field.add(name=name, number=number, type=kind, label=label, **more)

    add("type", 1, _Field.TYPE_ENUM, type_name=f".{package}.RequestEvent.Type")
    event.oneof_decl.add(name="_instance_id")
    event.oneof_decl.add(name="_timestamp_ns")
    event.oneof_decl.add(name="_trace_block_size_tokens")
    add("instance_id", 2, _Field.TYPE_STRING, proto3_optional=True, oneof_index=0)
    add("trace_id", 3, _Field.TYPE_STRING)
    add("timestamp_ns", 4, _Field.TYPE_INT64, proto3_optional=True, oneof_index=1)
    if packed_as_bytes:
        add("block_keys", _KEYS_FIELD, _Field.TYPE_BYTES)
    else:
        add("block_keys", _KEYS_FIELD, _Field.TYPE_SFIXED64, _Field.LABEL_REPEATED)
    add("input_token_len", 6, _Field.TYPE_INT64)
    add("trace_block_size_tokens", 7, _Field.TYPE_INT64, proto3_optional=True, oneof_index=2)
    entry = event.nested_type.add(name="FieldsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    entry_name = f".{package}.RequestEvent.FieldsEntry"
    add("fields", 15, _Field.TYPE_MESSAGE, _Field.LABEL_REPEATED, type_name=entry_name)
    add("registration", 16, _Field.TYPE_MESSAGE, type_name=f".{package}.RequestEvent.Registration")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.RequestEvent"))


EVENT_MESSAGE = _message("litehit.v1", packed_as_bytes=False)
"""The message as the schema file defines it."""

_PACKED = _message("litehit.v1.packed", packed_as_bytes=True)


class NativeProtobufFormat(TraceFormat):
    """One request event a record, in binary."""

    name = "native-protobuf"

    def __init__(self, naming: Naming = STATED) -> None:
        self._naming = naming

    def parse(self, record: bytes, context: RecordContext) -> Request | Registration | None:
        """See `TraceFormat.parse`."""
        if not record:
            raise FormatError(Reason.EMPTY_VALUE, "the record is empty; send one RequestEvent message")
        event, keys = _decode(record)
        if event.type == _WRITE:
            return None
        stated = event.instance_id if event.HasField("instance_id") else None
        if event.type == _REGISTER:
            return read_registration(stated_fields(event.registration), stated, context)
        if event.type != 0:
            raise FormatError(
                Reason.UNKNOWN_TYPE, f"type = {event.type} is unknown; send REQUEST (0), WRITE (1) or REGISTER (2)"
            )
        time_ns = event.timestamp_ns if event.HasField("timestamp_ns") else None
        block = event.trace_block_size_tokens if event.HasField("trace_block_size_tokens") else None
        if stated == "":
            raise FormatError(Reason.INVALID_FIELD, "instance_id = '' is empty; send an instance's id, or leave it out")
        if block is not None and block < 1:
            raise FormatError(
                Reason.INVALID_FIELD, f"trace_block_size_tokens = {block} is refused; send 1 or more, or leave it out"
            )
        members = _members(event, stated) if self._naming.by_template else {}
        return Request(
            instance_id=self._naming.instance_of(stated, members, context),
            trace_id=event.trace_id,
            timestamp_ns=time_of(time_ns, context, "timestamp_ns"),
            block_keys=keys,
            input_token_len=event.input_token_len,
            trace_block_size_tokens=block,
        )

    def parse_many(self, records: Sequence[bytes], contexts: Contexts) -> Contents:
        """See `TraceFormat.parse_many`."""
        if self._naming.by_template:
            return super().parse_many(records, contexts)
        return Contents.complete(read_messages(records).requests(contexts), self.parse, records, contexts)


def _members(event: Any, stated: str | None) -> dict[str, Any]:
    """What a template looks at; a name with dots is that of a field in objects, as it is in JSON."""
    members: dict[str, Any] = {}
    for name, value in sorted({"instance_id": stated, "trace_id": event.trace_id, **event.fields}.items()):
        *objects, last = name.split(".")
        holder = members
        for each in objects:
            inner = holder.get(each)
            holder[each] = holder = inner if isinstance(inner, dict) else {}
        holder[last] = value
    return members


def _decode(record: bytes) -> tuple[Any, Int64Array]:
    """The message and its keys."""
    try:
        event = _PACKED.FromString(record)
        keys = event.block_keys
        # Protobuf lets a writer send the keys one by one, or in several pieces. Then they are fields that this
        # declaration does not know, or it has kept the last piece only and the message is shorter than the record.
        if len(keys) % _KEY_BYTES == 0 and not len(UnknownFieldSet(event)) and event.ByteSize() == len(record):
            return event, np.frombuffer(keys, "<i8").astype(np.int64, copy=False)
        event = EVENT_MESSAGE.FromString(record)
    except DecodeError as error:
        raise FormatError(
            Reason.MALFORMED_PROTOBUF,
            f"the record is no RequestEvent message ({error}): {shown(record[:24])}; send one as "
            f"schemas/request_event.proto defines it",
        ) from None
    return event, np.array(event.block_keys, np.int64)
