"""Examples of whole answers, put together from those of their fields."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def example_of(model: type[BaseModel]) -> dict[str, Any]:
    """An instance of a model as JSON: of each field its first example, or one of the model that it is of."""
    return {info.alias or name: _example(info) for name, info in model.model_fields.items()}


def _example(info: FieldInfo) -> Any:
    if info.examples:
        return info.examples[0]
    if not info.is_required():
        return info.get_default()
    return _of_type(info.annotation)


def _of_type(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return example_of(annotation)
    if get_origin(annotation) is list:
        return [_of_type(get_args(annotation)[0])]
    # A type or None, whose metadata may hold an example.
    for one in get_args(annotation):
        for info in getattr(one, "__metadata__", ()):
            if getattr(info, "examples", None):
                return info.examples[0]
        if get_origin(one) is list or (isinstance(one, type) and issubclass(one, BaseModel)):
            return _of_type(one)
    raise TypeError(f"{annotation} has no example")
