"""A YAML document whose errors know their lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from litehit.errors import RegistryError
from schemas.registry import GroupEntry, InstanceEntry

FieldPath: TypeAlias = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)

_INT, _FLOAT, _MERGE = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "merge"))
_MAX_DEPTH = 8  # a registry is six deep; a node that contains itself has no end
_ABSENT = object()
_UNKNOWN = "extra_forbidden"


class _Loader(yaml.SafeLoader):
    """Takes no number for another: YAML 1.1 reads 12:30 as 750, 010 as 8 and 1e3 as a word."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - of the library
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_INT, _FLOAT)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(_INT, re.compile(r"[-+]?[0-9][0-9_]*$|0x[0-9a-fA-F]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$|[-+]?[0-9]+[eE][-+]?[0-9]+$"
        r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
    ),
    list("-+.0123456789"),
)
_OCTAL = re.compile(r"[-+]?0[0-9_]")


class RegistryDocument:
    """The values of a YAML file, and the line of each.

    Attributes:
        source: name of the file, for messages.
        value: mappings, lists and scalars.
    """

    def __init__(self, source: str, root: yaml.Node) -> None:
        self.source = source
        self._lines: dict[FieldPath, int] = {}
        self._texts: dict[FieldPath, str] = {}  # scalars but strings, as they stand in the file
        self._scalars = yaml.constructor.SafeConstructor()
        self.value = self._build(root, ())

    def validate(self, model: type[Model]) -> Model:
        """The document as a model.

        Raises:
            RegistryError: of the error nearest the top of the file.
        """
        try:
            return model.model_validate(self.value)
        except ValidationError as error:
            details = self._first(_innermost(error.errors()))
            raise self.error(details["loc"], _misplaced(details) or _advice(details)) from None

    def error(self, path: FieldPath, advice: str) -> RegistryError:
        """An error at a field: file, line, path, value, what to do."""
        value: Any = self.value
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                value = _ABSENT
        # A whole mapping or list says less than its line.
        text = self._texts.get(path, repr(value))
        shown = "" if value is _ABSENT or isinstance(value, dict | list) else f" = {_shorten(text)}"
        return RegistryError(f"{self.source}:{self._line(path)}: {_dotted(path)}{shown}: {advice}")

    def _first(self, errors: Sequence[ErrorDetails]) -> ErrorDetails:
        """The error nearest the top; of what is absent in a mapping and what is unknown there, that: a misspelling."""
        first = min(errors, key=lambda each: self._line(each["loc"]))
        if first["loc"] in self._lines:
            return first
        beside = [each for each in errors if each["type"] == _UNKNOWN and each["loc"][:-1] == first["loc"][:-1]]
        return min(beside or [first], key=lambda each: self._line(each["loc"]))

    def _line(self, path: FieldPath) -> int:
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

    def _build(self, node: yaml.Node, path: FieldPath) -> Any:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if len(path) > _MAX_DEPTH:
            raise self._syntax(node, f"{_dotted(path)} is nested too deep")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._build(item, (*path, position)) for position, item in enumerate(node.value)]
        if node.tag == _INT and _OCTAL.match(node.value):
            raise self._syntax(node, f"{_dotted(path)} = {node.value}: is octal to some and not to others; drop the 0")
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise self._syntax(
                node, f"{_dotted(path)} = {_shorten(repr(node.value))} is no plain value ({error})"
            ) from None
        if not isinstance(value, str):
            self._texts[path] = node.value or "null"
        return value

    def _mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        self._take(node, path, values, 0)
        return values

    def _take(self, node: yaml.MappingNode, path: FieldPath, values: dict[str, Any], depth: int) -> None:
        """Add what a mapping states, and then what it merges (<<), where that is not stated yet."""
        if depth > _MAX_DEPTH:
            raise self._syntax(node, f"{_dotted(path)} merges mappings too deep")
        stated: set[str] = set()
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                continue
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._syntax(key_node, f"a key of {_dotted(path)} is a list or mapping; use a plain word")
            if key in stated:
                raise self._syntax(key_node, f"{_dotted((*path, key))} is given twice; keep one of the two")
            stated.add(key)
            if key not in values:
                self._lines[*path, key] = key_node.start_mark.line + 1
                values[key] = self._build(value_node, (*path, key))
        for one in merged:
            if not isinstance(one, yaml.MappingNode):
                raise self._syntax(one, f"<< in {_dotted(path)} merges what is no mapping; name one, such as *base")
            self._take(one, path, values, depth + 1)

    def _syntax(self, node: yaml.Node, advice: str) -> RegistryError:
        return RegistryError(f"{self.source}:{node.start_mark.line + 1}: {advice}")


def read_document(path: Path) -> RegistryDocument:
    """Read a YAML file.

    Raises:
        RegistryError: the file cannot be read, or is no YAML.
    """
    try:
        root = yaml.compose(path.read_bytes(), Loader=_Loader)
    except OSError as error:
        raise RegistryError(f"{path}: cannot be read ({error.strerror}); give the path of a registry file") from None
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise RegistryError(f"{path}:{line}: is no valid YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RegistryError(f"{path}: is no valid YAML: {error}") from None
    if root is None:
        raise RegistryError(f"{path}:1: is empty; it needs groups and instances")
    return RegistryDocument(str(path), root)


def _dotted(path: FieldPath) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "the document"


def _shorten(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _innermost(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The errors without those of a field around another's: a list counts as too short for its invalid items."""
    around = {each["loc"][:depth] for each in errors for depth in range(len(each["loc"]))}
    return [each for each in errors if each["loc"] not in around]


_ADVICE = {
    _UNKNOWN: "is an unknown key; remove it or correct its spelling",
    "missing": "is required; add it",
    "too_short": "is empty; add an entry",
    "model_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "tuple_type": "must be a list",
    "string_type": "must be a string; put it in quotes",
}


def _misplaced(details: ErrorDetails) -> str | None:
    """Where an unknown key would be known."""
    if details["type"] != _UNKNOWN:
        return None
    key = details["loc"][-1]
    if key in ("name", "instance_id"):  # which every entry has, by the one or the other name
        return None
    for model, place in ((GroupEntry, "the instance's group"), (InstanceEntry, "an instance of the group")):
        if key in model.model_fields:
            return f"belongs to {place}; move it there"
    return None


def _advice(details: ErrorDetails) -> str:
    if details["type"] in _ADVICE:
        return _ADVICE[details["type"]]
    return details["msg"].removeprefix("Input ").replace("should ", "must ", 1)
