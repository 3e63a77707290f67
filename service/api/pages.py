"""Pages: one segment's facts summed by hour and group, which are kept in a file beside the store."""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from litehit.curve_table import CurveTable
from litehit.curves import Int64Array
from litehit.time_units import NS_PER_S
from service import tensor_file
from service.api.groups import GroupKey, Groups
from service.api.rows import FactRows
from service.archive.segment import SegmentInfo
from service.errors import ServiceError

FORMAT_VERSION = 1
BUCKET_NS = 3600 * NS_PER_S

_VERSION, _DESCRIPTION, _CHECKSUM = "litehit.format_version", "litehit.description", "litehit.crc32"
_TABLE = ("codes", "requests", "input_tokens", "offsets", "capacities", "hits")


class PagesDamaged(ServiceError):
    """A file is not the pages of the segment that it should be."""


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """The row groups of a segment's file: what can be read of it without the rest.

    Attributes:
        rows: int64[N], facts of each.
        first_ns, last_ns: int64[N], earliest and latest time of a fact of each.
    """

    rows: Int64Array
    first_ns: Int64Array
    last_ns: Int64Array


@dataclass(frozen=True, eq=False)
class SegmentPages:
    """The facts of one segment, or of a part of one, summed.

    Attributes:
        groups: G groups.
        totals: sums of everything; the codes are the groups' numbers.
        hours: int64[B], hours since 1970 that have a fact, ascending.
        first_ns, last_ns: int64[B], earliest and latest time of a fact of each hour.
        buckets: sums by hour; the codes are `place of the hour * G + number of the group`.
    """

    groups: Groups
    totals: CurveTable
    hours: Int64Array
    first_ns: Int64Array
    last_ns: Int64Array
    buckets: CurveTable

    @classmethod
    def of(cls, rows: FactRows) -> SegmentPages:
        """Sum facts."""
        hours, places = np.unique(rows.times_ns // BUCKET_NS, return_inverse=True)
        first_ns, last_ns = np.full(len(hours), 2**63 - 1), np.full(len(hours), -(2**63))
        np.minimum.at(first_ns, places, rows.times_ns)
        np.maximum.at(last_ns, places, rows.times_ns)
        groups = len(rows.groups)
        buckets = CurveTable.of(
            places * groups + rows.codes, rows.input_token_lens, rows.hit_curves, len(hours) * groups
        )
        return cls(rows.groups, rows.sums(), hours, first_ns, last_ns, buckets)

    @classmethod
    def joined(cls, parts: Sequence[SegmentPages]) -> SegmentPages:
        """Those of several parts together."""
        groups = Groups.of(key for part in parts for key in part.groups.keys)
        hours = np.unique(np.concatenate([part.hours for part in parts]))
        first_ns, last_ns = np.full(len(hours), 2**63 - 1), np.full(len(hours), -(2**63))
        totals, buckets = [], []
        for part in parts:
            places = np.searchsorted(hours, part.hours)
            first_ns[places] = np.minimum(first_ns[places], part.first_ns)
            last_ns[places] = np.maximum(last_ns[places], part.last_ns)
            numbers = groups.numbers(part.groups.keys)
            totals.append(part.totals.recoded(numbers[part.totals.codes]))
            place, number = np.divmod(part.buckets.codes, max(1, len(part.groups)))
            buckets.append(part.buckets.recoded(places[place] * len(groups) + numbers[number]))
        return cls(groups, CurveTable.sum(totals), hours, first_ns, last_ns, CurveTable.sum(buckets))

    @property
    def facts(self) -> int:
        """How many facts are summed."""
        return int(self.totals.requests.sum())

    def hour(self, place: int) -> tuple[int, int]:
        """First nanosecond of the hour at a place, and the first past it."""
        start = int(self.hours[place]) * BUCKET_NS
        return start, start + BUCKET_NS

    def bucket_range(self, low: int, high: int) -> tuple[CurveTable, Int64Array]:
        """The sums of the hours at the places `low:high`, and the number of each sum's group."""
        first, last = np.searchsorted(self.buckets.codes, [low * len(self.groups), high * len(self.groups)])
        table = self.buckets.slice(int(first), int(last))
        return table, table.codes % max(1, len(self.groups))


@dataclass(frozen=True, eq=False)
class SegmentSums:
    """A published segment as the index holds it.

    Attributes:
        info: the segment.
        pages: its facts, summed.
        row_groups: its file's.
        mapped: the file of the pages, where the arrays are views of one.
    """

    info: SegmentInfo
    pages: SegmentPages
    row_groups: RowGroups
    mapped: mmap.mmap | None = None

    def release(self) -> None:
        """Give back the memory that the file's content took up; it is read again where it is needed."""
        if self.mapped is not None:
            self.mapped.madvise(mmap.MADV_DONTNEED)


class _Description(BaseModel):
    model_config = ConfigDict(extra="forbid")

    segment: dict[str, str]
    groups: list[GroupKey]


def encode(sums: SegmentSums) -> memoryview:
    """The file."""
    pages = sums.pages
    description = _Description(segment=sums.info.metadata(), groups=list(pages.groups.keys)).model_dump_json()
    arrays = {
        "hours": pages.hours,
        "first_ns": pages.first_ns,
        "last_ns": pages.last_ns,
        "row_groups.rows": sums.row_groups.rows,
        "row_groups.first_ns": sums.row_groups.first_ns,
        "row_groups.last_ns": sums.row_groups.last_ns,
    }
    for name, table in (("totals", pages.totals.compact()), ("buckets", pages.buckets.compact())):
        arrays |= {f"{name}.{column}": getattr(table, column) for column in _TABLE}
    metadata = {
        _VERSION: str(FORMAT_VERSION),
        _DESCRIPTION: description,
        _CHECKSUM: _checksum(description, arrays),
    }
    return tensor_file.encode(arrays, metadata)


def decode(info: SegmentInfo, content: bytes | mmap.mmap) -> SegmentSums:
    """Read a file back; the arrays are views of its content.

    Raises:
        PagesDamaged: it is not what was written for this segment by this version.
    """
    try:
        arrays, metadata = tensor_file.decode(content)
        if metadata[_VERSION] != str(FORMAT_VERSION):
            raise PagesDamaged(f"format version {metadata[_VERSION]}, not {FORMAT_VERSION}")
        if metadata[_CHECKSUM] != _checksum(metadata[_DESCRIPTION], arrays):
            raise PagesDamaged(f"its content does not give its checksum {metadata[_CHECKSUM]}")
        description = _Description.model_validate_json(metadata[_DESCRIPTION])
        if description.segment != info.metadata():
            raise PagesDamaged(f"it is of another segment: {description.segment}")
        totals, buckets = (
            CurveTable(*(arrays[f"{name}.{column}"] for column in _TABLE)) for name in ("totals", "buckets")
        )
        pages = SegmentPages(
            Groups(tuple(description.groups)), totals, arrays["hours"], arrays["first_ns"], arrays["last_ns"], buckets
        )
        row_groups = RowGroups(*(arrays[f"row_groups.{column}"] for column in ("rows", "first_ns", "last_ns")))
    except KeyError as error:
        raise PagesDamaged(f"it has no {error}") from None
    except ValidationError as error:
        raise PagesDamaged(f"its description is none of pages: {error.errors()[0]['msg']}") from None
    except ValueError as error:
        raise PagesDamaged(str(error)) from None
    return SegmentSums(info, pages, row_groups, content if isinstance(content, mmap.mmap) else None)


def _checksum(description: str, arrays: Mapping[str, np.ndarray]) -> str:
    """CRC-32 of the description and of each array's name, type and content, by name."""
    crc = zlib.crc32(description.encode())
    for name, array in sorted(arrays.items()):
        crc = zlib.crc32(f"\n{name} {array.dtype.str}\n".encode(), crc)
        crc = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, crc)
    return f"{crc:08x}"
