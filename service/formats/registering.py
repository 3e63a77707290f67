"""From a registration event, in whatever encoding, to the registration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from litehit.registration import Registration
from schemas.dead_letter import Reason
from schemas.registration import RegisterEvent
from schemas.registry import whole_nanoseconds
from service.formats.base import FormatError, RecordContext, instance_of, invalid_field


def read_registration(fields: Mapping[str, Any], instance_id: str | None, context: RecordContext) -> Registration:
    """The registration that some fields state, in Python's own types.

    Raises:
        FormatError: a field is wrong; or as `registration_of`.
    """
    try:
        event = RegisterEvent.model_validate({"type": "register", "instance_id": instance_id, **fields})
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        raise FormatError(Reason.INVALID_FIELD, invalid_field(details["loc"], details)) from None
    return registration_of(event, context)


def registration_of(event: RegisterEvent, context: RecordContext) -> Registration:
    """The registration in an event.

    Raises:
        FormatError: it states nothing, or its instance is known neither from the record nor from the context.
    """
    registration = Registration(
        instance_of(event.instance_id, context),
        event.block_size_tokens,
        event.trace_block_size_tokens,
        event.charge,
        event.enable_prefix_hash,
        None if event.ttl_seconds is None else whole_nanoseconds(event.ttl_seconds),
        event.capacity_gb,
        event.reset,
    )
    if registration == Registration(registration.instance_id):
        settings = sorted(RegisterEvent.model_fields.keys() - {"type", "instance_id", "linear_step", "reset"})
        raise FormatError(
            Reason.INVALID_FIELD,
            f"the registration of {registration.instance_id!r} states nothing; send {', '.join(settings)} or reset",
        )
    return registration
