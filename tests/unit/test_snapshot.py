"""The file of a snapshot: what is read back is what was written, or a sentence that says what is wrong."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from litehit.registry import Registry
from service.errors import SnapshotDamaged
from service.lanes import snapshot as snapshot_module
from service.lanes.snapshot import Reset, Snapshot, decode, encode, offset_of
from tests import lanes_harness as harness
from tests import snapshots_made as made


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


@pytest.fixture(scope="module")
def kept(known: Registry) -> Snapshot:
    return made.made_snapshot(known)


@pytest.fixture(scope="module")
def content(kept: Snapshot) -> bytes:
    return bytes(encode(kept))


def test_its_name_says_what_it_is_of(kept: Snapshot) -> None:
    assert kept.path == "snapshots/requests/generation/00003/00000000000000000200.safetensors"
    assert offset_of(kept.path) == 200
    assert offset_of("snapshots/requests/generation/00003/200.safetensors") is None
    assert offset_of(kept.path + ".tmp") is None


def test_what_is_written_is_read_back(kept: Snapshot, content: bytes) -> None:
    read = decode(kept.path, content)
    assert made.same(read, kept)
    assert read.taken_at == kept.taken_at
    assert [one.config for one in read.instances] == [one.config for one in kept.instances]
    assert len(read.instances) == 5
    assert [one.config.instance_id for one in read.instances] == sorted(harness.INSTANCES)
    chosen = replace(kept, history=2, reset=Reset("group", None))
    assert decode(kept.path, bytes(encode(chosen))).reset == Reset("group", None)


def test_a_lane_without_instances_has_a_snapshot(known: Registry) -> None:
    empty = made.snapshot_of(made.new_lane(known))
    assert decode(empty.path, bytes(encode(empty))).instances == []


def test_every_flipped_bit_is_found(kept: Snapshot, content: bytes) -> None:
    """All of the header, and much of the arrays; a blank of the padding may become another."""
    header_end = 8 + int.from_bytes(content[:8], "little")
    rest = random.Random(5).sample(range(header_end, len(content)), 400)
    for place in [*range(header_end), *rest, len(content) - 1]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        with suppress(SnapshotDamaged):
            assert made.same(decode(kept.path, bytes(damaged)), kept)
            assert damaged[place : place + 1].isspace()


@pytest.mark.parametrize("left", [0, 7, 8, 100, 3000, -8, -1])
def test_a_truncated_file_is_found(kept: Snapshot, content: bytes, left: int) -> None:
    with pytest.raises(SnapshotDamaged, match=re.escape(kept.path)):
        decode(kept.path, content[:left])


def test_another_version_says_who_reads_it(kept: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_module, "FORMAT_VERSION", 3)
    newer = bytes(encode(kept))
    monkeypatch.undo()
    with pytest.raises(SnapshotDamaged, match="format version 3, but this program reads 2; use the release that"):
        decode(kept.path, newer)


@pytest.mark.parametrize(
    "other",
    [
        "snapshots/requests/generation/00002/00000000000000000200.safetensors",
        "snapshots/requests/another/00003/00000000000000000200.safetensors",
        "snapshots/requests/generation/00003/00000000000000000201.safetensors",
        "snapshots/events/generation/00003/00000000000000000200.safetensors",
    ],
)
def test_a_renamed_file_is_found(kept: Snapshot, content: bytes, other: str) -> None:
    with pytest.raises(SnapshotDamaged, match=f"its metadata says it is {kept.path}; it was renamed"):
        decode(other, content)


def test_another_file_of_arrays_is_none(tmp_path: Path, kept: Snapshot) -> None:
    import numpy as np
    from safetensors.numpy import save

    with pytest.raises(SnapshotDamaged, match="no 'format_version', so it is no snapshot of a lane"):
        decode(kept.path, save({"weights": np.arange(3)}))
