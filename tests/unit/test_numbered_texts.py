from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.curves import FlatCurves
from litehit.facts import FactBatch
from litehit.numbered_texts import NumberedTexts
from litehit.text_kernels import texts_of
from tests.facts_written import rows_of

NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=10).map(lambda numbers: np.array(numbers, np.int64))
NAMES = st.text(max_size=5)


@given(name=NAMES, numbers=NUMBERS)
def test_the_text_is_that_of_the_strings(name: str, numbers: np.ndarray) -> None:
    numbered = NumberedTexts(name, numbers)
    strings = list(numbered)
    assert strings == [numbered[i] for i in range(len(numbered))] == [f"{name}-{number}" for number in numbers.tolist()]
    assert list(numbered[1:3]) == strings[1:3]
    made, expected = numbered.texts(), texts_of(strings)
    assert made.text.tobytes() == expected.text.tobytes()
    assert made.bounds.tolist() == expected.bounds.tolist()


@pytest.mark.parametrize("name", ["trace", 'a"b', "a,b", "a\\b", "ä", "a\nb"])
def test_facts_with_them_are_written_as_with_the_strings(name: str) -> None:
    numbers = np.arange(3)
    curves = FlatCurves.from_curves([(), ((1, 2),), ((2, 1), (4, 3))])
    numbered, listed = (
        FactBatch(ids, [name] * 3, numbers, numbers, numbers, numbers, curves)
        for ids in (NumberedTexts(name, numbers), [f"{name}-{number}" for number in numbers])
    )
    assert numbered.to_json() == listed.to_json()
    assert [json.loads(fact)["trace_id"] for fact in numbered.to_json()] == list(listed.trace_ids)
    rows = rows_of(numbered)
    assert rows == rows_of(listed)
    assert [row[:2] for row in csv.reader(io.StringIO(rows.decode(), newline=""))] == [
        [f"{name}-{number}", name] for number in numbers
    ]
