"""A column of ids is what the list of its strings is, to whoever asks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litehit.ascii_texts import AsciiTexts, texts_at, texts_joined
from litehit.curves import FlatCurves
from litehit.facts import FactBatch
from litehit.text_kernels import texts_of
from tests.facts_written import rows_of

TEXTS = st.lists(st.text(st.characters(max_codepoint=127), max_size=4), max_size=8)


def column(texts: list[str]) -> AsciiTexts:
    """The texts, taken out of one in which others stand between them."""
    text = np.frombuffer("".join(f"<{one}>" for one in texts).encode(), np.uint8)
    lengths = np.array([len(one) for one in texts], np.int64)
    firsts = np.cumsum(lengths + 2) - lengths - 1
    return AsciiTexts.gather(text, firsts, firsts + lengths)


@given(texts=TEXTS, first=st.integers(-9, 9), end=st.integers(-9, 9), data=st.data())
def test_it_is_the_list_of_its_strings(texts: list[str], first: int, end: int, data: st.DataObject) -> None:
    made = column(texts)
    assert (
        list(made)
        == texts
        == [made[row] for row in range(len(made))]
        == [made[row - len(made)] for row in range(len(made))]
    )
    assert list(made[first:end]) == texts[first:end]
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=9)) if texts else []
    at = np.array(rows, np.int64)
    assert list(texts_at(made, at)) == texts_at(texts, at) == [texts[row] for row in rows]
    expected = texts_of(texts)
    assert made.texts.text.tobytes() == expected.text.tobytes()
    assert made.texts.bounds.tolist() == expected.bounds.tolist()


@given(parts=st.lists(TEXTS, min_size=1, max_size=4), listed=st.booleans())
def test_columns_are_joined(parts: list[list[str]], listed: bool) -> None:
    columns = [part if listed and not place else column(part) for place, part in enumerate(parts)]
    joined = texts_joined(columns)
    assert list(joined) == [text for part in parts for text in part]
    assert isinstance(joined, AsciiTexts) is not listed


@given(texts=TEXTS)
def test_facts_with_them_are_written_as_with_the_strings(texts: list[str]) -> None:
    numbers = np.arange(len(texts))
    curves = FlatCurves.from_curves([()] * len(texts))
    in_column, in_list = (
        FactBatch(ids, ["a"] * len(texts), numbers, numbers, numbers, numbers, curves) for ids in (column(texts), texts)
    )
    assert in_column.to_json() == in_list.to_json()
    assert rows_of(in_column) == rows_of(in_list)
