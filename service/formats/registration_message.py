"""The part of the binary request event that registers an instance, see schemas/request_event.proto."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2

_Field = descriptor_pb2.FieldDescriptorProto

_OPTIONAL = {
    "block_size_tokens": (1, _Field.TYPE_INT64),
    "trace_block_size_tokens": (2, _Field.TYPE_INT64),
    "block_bytes": (3, _Field.TYPE_INT64),
    "enable_prefix_hash": (5, _Field.TYPE_BOOL),
    "ttl_seconds": (6, _Field.TYPE_DOUBLE),
}


def add_registration(event: descriptor_pb2.DescriptorProto, name: str) -> None:
    """Declare the message `Registration` inside the event's.

    Args:
        event: the event's message.
        name: its full name, with a dot before.
    """
    message = event.nested_type.add(name="Registration")
    slots = message.nested_type.add(name="Slots")
    slots.field.add(name="capacity_gb", number=1, type=_Field.TYPE_DOUBLE, label=_Field.LABEL_REPEATED)
    entry = message.nested_type.add(name="LocationSpecsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=_Field.TYPE_INT64, label=_Field.LABEL_OPTIONAL)
    for field, (number, kind) in _OPTIONAL.items():
        if number == 5:
            message.field.add(
                name="location_specs",
                number=4,
                type=_Field.TYPE_MESSAGE,
                type_name=f"{name}.Registration.LocationSpecsEntry",
                label=_Field.LABEL_REPEATED,
            )
        message.field.add(
            name=field,
            number=number,
            type=kind,
            label=_Field.LABEL_OPTIONAL,
            proto3_optional=True,
            oneof_index=len(message.oneof_decl),
        )
        message.oneof_decl.add(name=f"_{field}")
    message.field.add(
        name="slots",
        number=7,
        type=_Field.TYPE_MESSAGE,
        type_name=f"{name}.Registration.Slots",
        label=_Field.LABEL_OPTIONAL,
    )
    message.field.add(name="reset", number=8, type=_Field.TYPE_BOOL, label=_Field.LABEL_OPTIONAL)


def stated_fields(message: Any) -> dict[str, Any]:
    """What a `Registration` message states, as the fields of a `RegisterEvent`."""
    fields: dict[str, Any] = {name: getattr(message, name) for name in _OPTIONAL if message.HasField(name)}
    if message.location_specs:
        fields["location_specs"] = dict(message.location_specs)
    if message.HasField("slots"):
        fields["capacity_gb"] = tuple(message.slots.capacity_gb)
    return fields | {"reset": message.reset}
