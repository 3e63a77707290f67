from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from litehit.numbered_texts import NumberedTexts
from litehit.text_kernels import Texts
from litehit.written_texts import json_strings, written_texts


def strings(texts: Texts) -> list[str]:
    text, bounds = texts
    return [text[low:high].tobytes().decode() for low, high in pairwise(bounds.tolist())]


@given(st.lists(st.text(max_size=5), max_size=5))
@example(['\x00"\\\x1f\x7f\n', "ä"])
@example(["a", "a", "a"])
def test_what_stands_in_json_is_the_string(ids: list[str]) -> None:
    written = strings(written_texts(ids, json_strings))
    assert [json.loads(f'"{text}"') for text in written] == ids


@pytest.mark.parametrize("name", ["trace", 'a"b', "ä"])
def test_numbered_ids_are_written_as_the_strings_are(name: str) -> None:
    ids = NumberedTexts(name, np.array([3, -1, 2**63 - 1]))
    assert strings(written_texts(ids, json_strings)) == strings(written_texts(list(ids), json_strings))


def test_ids_that_are_all_the_same_are_written_once() -> None:
    asked: list[int] = []

    def written(ids: Sequence[str]) -> Sequence[str]:
        asked.append(len(ids))
        return [f"<{one}>" for one in ids]

    assert strings(written_texts(["a"] * 5, written)) == ["<a>"] * 5
    assert strings(written_texts(["a", "b"], written)) == ["<a>", "<b>"]
    assert asked == [1, 2]
