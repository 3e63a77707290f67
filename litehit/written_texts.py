"""Ids as the text of some format has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pydantic_core

from litehit.ascii_texts import AsciiTexts
from litehit.numbered_texts import NumberedTexts
from litehit.text_kernels import Texts, repeated, texts_of

_NEEDS_ESCAPES = re.compile(r'["\\\x00-\x1f]').search


def written_texts(ids: Sequence[str], written: Callable[[Sequence[str]], Sequence[str]]) -> Texts:
    """Ids as they are written, each by itself.

    Args:
        ids: the ids.
        written: gives them as they are to be written; what it leaves as it is, it does so with digits after it too, and
            each piece of it.
    """
    if isinstance(ids, AsciiTexts):
        joined = ids.joined()
        return ids.texts if written((joined,))[0] == joined else texts_of(written(ids))
    if isinstance(ids, NumberedTexts):
        # A number is written as it is; so is all, if the name is.
        return ids.texts() if written((ids.name,))[0] == ids.name else texts_of(written(ids))
    if len(ids) > 1 and ids.count(ids[0]) == len(ids):
        return repeated(written(ids[:1])[0], len(ids))
    return texts_of(written(ids))


def json_strings(texts: Sequence[str]) -> Sequence[str]:
    """What stands between the quotes of JSON strings."""
    if not _NEEDS_ESCAPES("".join(texts)):
        return texts
    return [pydantic_core.to_json(text).decode()[1:-1] for text in texts]
