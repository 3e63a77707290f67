from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from litehit.text_kernels import MOST_DIGITS, parts_of, put_integer, put_integers, put_text, repeated, texts_of

INT64 = st.integers(-(2**63), 2**63 - 1)
LIMITS = [sign * (10**digits + step) for digits in range(19) for step in (-1, 0, 1) for sign in (1, -1)] + [
    -(2**63),
    2**63 - 1,
]


def written(value: int) -> bytes:
    """What is written of an integer; nothing is written outside of its room."""
    out = np.zeros(MOST_DIGITS + 2, np.uint8)
    end = put_integer(out, 1, np.int64(value))
    assert end <= MOST_DIGITS + 1
    assert out[0] == out[-1] == 0
    return out[1:end].tobytes()


@given(value=INT64)
def test_an_integer_is_written_as_python_writes_it(value: int) -> None:
    assert written(value) == str(value).encode()


@pytest.mark.parametrize("value", LIMITS)
def test_an_integer_at_a_limit_of_digits(value: int) -> None:
    assert written(value) == str(value).encode()


def test_each_group_of_four_digits_is_written_rightly_wherever_it_stands() -> None:
    """What it is divided by in a kernel is right for all of them."""
    for four in range(10_000):
        value = int(f"1{four:04}{four:04}{four:04}{four:04}")
        assert written(value) == str(value).encode()


@given(values=st.lists(INT64), data=st.data())
@example([], None)
def test_integers_are_written_with_commas(values: list[int], data: st.DataObject | None) -> None:
    low, high = sorted(data.draw(st.integers(0, len(values))) for _ in range(2)) if data else (0, 0)
    out = np.zeros(1 + (high - low) * (MOST_DIGITS + 1), np.uint8)
    end = put_integers(out, 1, np.array(values, np.int64), low, high)
    assert out[1:end].tobytes() == ",".join(map(str, values[low:high])).encode()


@pytest.mark.parametrize("texts", [[], [b""], [b"a", b"", b"bc"]])
def test_the_parts_of_a_text(texts: list[bytes]) -> None:
    out = np.frombuffer(b"".join(texts) + b"what is not written", np.uint8)
    assert parts_of(out, np.cumsum([len(text) for text in texts], dtype=np.int64)) == texts


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
