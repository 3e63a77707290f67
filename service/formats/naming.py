"""To which instance a record belongs: what it states, or what a template makes of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schemas.dead_letter import INSTANCE_HEADER, Reason
from service.formats.base import FormatError, RecordContext, instance_of, is_unicode, shown
from service.formats.fast_object import Member, Wanted
from service.formats.number_text import NumberText
from service.instance_template import InstanceTemplate, TemplateField


class Naming:
    """Names the instance of records of one format.

    What a publisher has said of a record (`RecordContext.named`) goes before the template, and the template before what
    the record states.

    Args:
        template: of the ids; None: a record states its instance.
    """

    def __init__(self, template: InstanceTemplate | None = None) -> None:
        self._template = template
        self._wanted: dict[str, Any] = {}
        for field in () if template is None else template.fields:
            _want(self._wanted, field.path)

    @property
    def by_template(self) -> bool:
        """Whether members beyond those of the format are needed."""
        return self._template is not None

    def join(self, wanted: Wanted) -> Wanted:
        """The members that a format wants, and those that the template names."""
        return _joined(wanted, self._wanted)

    def keep(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Those of some members that the template looks at, whole."""
        return {name: members[name] for name in self._wanted if name in members}

    def instance_of(self, stated: str | None, members: Mapping[str, Any], context: RecordContext) -> str:
        """The record's instance.

        Args:
            stated: what the record itself says; None where it says nothing.
            members: what the record has of `join`.
            context: of the record.

        Raises:
            FormatError: it is not known, or a field of the template is absent or no text.
        """
        if context.named is not None:
            return _told(context.named)
        if self._template is None:
            return instance_of(stated, context)
        return self._template.render(lambda field: self._text(members, field))

    def _text(self, members: Mapping[str, Any], field: TemplateField) -> str:
        value: Any = members
        for depth, name in enumerate(field.path, 1):
            value = value.get(name)
            if value is None or (type(value) is str and not value):
                return self._default(field, depth, value)
            if depth < len(field.path) and not isinstance(value, Mapping):
                raise FormatError(
                    Reason.INVALID_FIELD, f"{_path(field, depth)} = {shown(value)} is refused; send an object"
                )
        # A bool is an int to Python.
        if type(value) is int or isinstance(value, NumberText):
            return str(value)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if type(value) is not str or not is_unicode(value):
            raise FormatError(
                Reason.INVALID_FIELD,
                f"{field.name} = {shown(value)} is refused, since the instance is made of it; "
                f"send a string or a number",
            )
        return value

    def _default(self, field: TemplateField, depth: int, value: object) -> str:
        if field.default is not None:
            return field.default
        what = "is absent or null" if value is None else "is empty"
        template = "" if self._template is None else self._template.text
        raise FormatError(
            Reason.INSTANCE_FIELD_MISSING,
            f"{_path(field, depth)} {what}, and the instance is made of it ({template}); send it (publish leaves "
            f"it out unless it has the template too, or --raw), or give it a default: {{{field.name}|none}}",
        )


def _told(named: str) -> str:
    if not named:
        raise FormatError(
            Reason.INSTANCE_FIELD_MISSING,
            f"the header {INSTANCE_HEADER} is empty: the record's publisher found no instance for it by its template; "
            f"mend the record and publish it again, or send no such header",
        )
    return named


STATED = Naming()
"""No template."""


def naming_by(template: str | None) -> Naming:
    """By a template of ids; None: by what records state.

    Raises:
        OptionError: the template is none.
    """
    return STATED if template is None else Naming(InstanceTemplate.parse(template))


def _want(wanted: dict[str, Any], path: tuple[str, ...]) -> None:
    *objects, last = path
    for name in objects:
        inner = wanted.setdefault(name, {})
        if not isinstance(inner, dict):  # another field is this very object; reading finds it to be one or the other
            return
        wanted = inner
    wanted.setdefault(last, Member.VALUE)


def _joined(wanted: Wanted, others: Wanted) -> Wanted:
    joined = dict(wanted)
    for name, other in others.items():
        own = joined.setdefault(name, other)
        if not isinstance(own, Member) and not isinstance(other, Member):
            joined[name] = _joined(own, other)
    return joined


def _path(field: TemplateField, depth: int) -> str:
    return ".".join(field.path[:depth])
