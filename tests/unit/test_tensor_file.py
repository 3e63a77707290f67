"""Files of arrays that safetensors reads, and reading those it writes; damage is told."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from service.tensor_file import decode, encode

DTYPES = [np.int64, np.uint64, np.int32]
arrays = st.dictionaries(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
        lambda name: name != "__metadata__"
    ),
    st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 2**31 - 1), max_size=9)),
    max_size=5,
).map(lambda made: {name: np.array(values, dtype) for name, (dtype, values) in made.items()})
metadata = st.dictionaries(st.sampled_from("abc"), st.text(max_size=20))


@given(written=arrays, texts=metadata)
def test_what_is_written_is_read_by_both(written: dict[str, np.ndarray], texts: dict[str, str]) -> None:
    content = bytes(encode(written, texts))
    found, found_texts = decode(content)
    assert found_texts == texts
    for read in (found, safetensors.numpy.load(content)):
        assert read.keys() == written.keys()
        for name, array in written.items():
            assert read[name].dtype == array.dtype
            assert np.array_equal(read[name], array)


@given(written=arrays.filter(bool), texts=metadata)  # it writes no valid header for none
def test_what_the_library_writes_is_read(written: dict[str, np.ndarray], texts: dict[str, str]) -> None:
    found, found_texts = decode(safetensors.numpy.save(written, texts))
    assert found_texts == texts
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in written.items()
    }


def test_arrays_are_views_and_aligned() -> None:
    content = bytes(encode({"a": np.arange(3, dtype=np.int32), "b": np.arange(2)}, {"x": "y"}))
    found, _ = decode(content)
    assert all(array.flags.aligned and not array.flags.owndata for array in found.values())


def header(text: str, data: bytes = b"") -> bytes:
    return len(text).to_bytes(8, "little") + text.encode() + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "its header alone"),
        (b"\xff" * 20, "its header alone"),
        (header("{"), "its header is none"),
        (header("[]"), "its header is none"),
        (header('{"a":{"dtype":"I64"}}'), "its header is none"),
        (header('{"__metadata__":{"a":1}}'), "its header is none"),
        (header('{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', b"8" * 8), "type F64"),
        (header('{"a":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]}}', b"8" * 8), r"shape \[1, 1\]"),
        (header('{"a":{"dtype":"I64","shape":[2],"data_offsets":[0,8]}}', b"8" * 8), r"does not lie at \[0, 8\]"),
        (header('{"a":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}}', b"8" * 16), "does not lie"),
        (header('{"a":{"dtype":"I64","shape":[1],"data_offsets":[0]}}', b"8" * 8), "does not lie"),
        (header('{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}', b"8" * 7), "its arrays end at"),
        (header('{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}', b"8" * 9), "its arrays end at"),
    ],
)
def test_damage_is_told(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(content)
