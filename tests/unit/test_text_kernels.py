from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from litehit.text_kernels import MOST_DIGITS, put_integer, put_text, repeated, texts_of


@given(value=st.integers(-(2**63), 2**63 - 1))
@example(0)
@example(-(2**63))
@example(2**63 - 1)
@example(10**18)
def test_an_integer_is_written_as_python_writes_it(value: int) -> None:
    out = np.zeros(MOST_DIGITS + 2, np.uint8)
    end = put_integer(out, 1, np.int64(value))
    assert out[1:end].tobytes() == str(value).encode()
    assert out[end:].tolist() == [0] * (len(out) - end)


@pytest.mark.parametrize("texts", [[], ["", "a", ""], ["a", "bc"], ["ä", "b", "𝄞"]])
def test_texts_are_utf_8_end_to_end(texts: list[str]) -> None:
    text, bounds = texts_of(texts)
    assert [text[low:high].tobytes().decode() for low, high in pairwise(bounds.tolist())] == texts


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("text", ["", "a", "ä𝄞"])
def test_a_text_repeated_is_so_many_texts(text: str, count: int) -> None:
    made, expected = repeated(text, count), texts_of([text] * count)
    assert made.text.tobytes() == expected.text.tobytes()
    assert made.bounds.dtype == expected.bounds.dtype
    assert made.bounds.tolist() == expected.bounds.tolist()


def test_a_part_of_a_text_is_put() -> None:
    out = np.zeros(5, np.uint8)
    assert put_text(out, 1, np.frombuffer(b"abcdef", np.uint8), 2, 4) == 3
    assert out.tobytes() == b"\0cd\0\0"
