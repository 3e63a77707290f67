"""How an instance id is built from fields of a record: `{model}/{metadata.tenant|none}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from litehit.errors import OptionError

_PART = re.compile(r"\{\{|\}\}|\{(?P<path>[^{}|]*)(?:\|(?P<default>[^{}]*))?\}|[{}]|[^{}]+")


@dataclass(frozen=True, slots=True)
class TemplateField:
    """A field of the record.

    Attributes:
        path: its name, after those of the objects that it is in.
        default: what stands for it where it is absent, null or empty; None: nothing does.
    """

    path: tuple[str, ...]
    default: str | None

    @property
    def name(self) -> str:
        """As the template has it."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class InstanceTemplate:
    """Text and fields in turn. Two records with different values never get one id.

    That is so since the first character of each text between two fields is escaped in every value (`%2F` for `/`, and
    `%25` for `%`), so that a value ends where it first occurs. With one field nothing needs an escape.

    Attributes:
        text: as it was given.
        fields: the fields.
        texts: what stands around them, one more than there are fields.
        escapes: characters that values must not have, with what stands for them.
    """

    text: str
    fields: tuple[TemplateField, ...]
    texts: tuple[str, ...]
    escapes: dict[int, str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a template.

        Raises:
            OptionError: it is none, or could give one id to different values, or an empty one.
        """
        fields: list[TemplateField] = []
        texts = [""]
        for part in _PART.finditer(text):
            path = part["path"]
            if path is not None:
                fields.append(_field(text, path, part["default"]))
                texts.append("")
            elif part[0] in {"{", "}"}:
                raise _refused(text, f"has a {part[0]} by itself; write a field as {{name}}, and a brace twice")
            else:
                texts[-1] += part[0][0] if part[0] in {"{{", "}}"} else part[0]
        if not fields:
            raise _refused(text, "names no field; write fields of the record in braces, such as {model}/{tenant}")
        between = texts[1:-1]
        for one, separator, other in zip(fields, between, fields[1:], strict=False):
            if not separator or separator[0].isalnum() or separator[0] == "%":
                raise _refused(
                    text,
                    f"needs a text between {{{one.name}}} and {{{other.name}}} that begins with neither a letter, nor "
                    f"a digit, nor %, such as /",
                )
        if not any(texts) and all(field.default == "" for field in fields):
            raise _refused(text, "would give an empty id; give a field another default")
        escaped = {separator[0] for separator in between} | ({"%"} if between else set())
        escapes = {ord(one): "".join(f"%{byte:02X}" for byte in one.encode()) for one in escaped}
        return cls(text, tuple(fields), tuple(texts), escapes)

    def render(self, value_of: Callable[[TemplateField], str]) -> str:
        """The id that the fields' values give; of a field without a value, the default."""
        parts = [self.texts[0]]
        for field, after in zip(self.fields, self.texts[1:], strict=True):
            value = value_of(field)
            parts += (value.translate(self.escapes) if self.escapes else value, after)
        return "".join(parts)


def _field(text: str, path: str, default: str | None) -> TemplateField:
    names = tuple(path.split("."))
    if not all(names):
        raise _refused(text, f"has a field {{{path}}} without a name; name it, after a dot where it is in an object")
    return TemplateField(names, default)


def _refused(text: str, why: str) -> OptionError:
    return OptionError(f"instance template {text!r} {why}")
