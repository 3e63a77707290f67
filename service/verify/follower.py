"""One stream of what was found, held against what must be there, in the order of the requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from service.errors import Difference
from service.records import OutputRecord
from service.settings import MAX_BATCH_RECORDS
from service.verify.found import Found, FoundOrGap, Gap

_AROUND = 24  # bytes shown before and after the first that differs
_OTHERWISE = "; or the registry or settings given to this command are not the lanes' own"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request must have become: one of its facts, or its dead letter.

    Attributes:
        source: `<topic>/<partition>/<offset>` of the request.
        source_offset: that offset.
        output: the fact or dead letter. Facts of one request are of several instances, so their keys differ.
    """

    source: str
    source_offset: int
    output: OutputRecord


class Follower:
    """Holds a stream against what must be in it.

    Args:
        what: what the stream holds, such as `fact`, and where: for messages.
        found: the stream.
        start: first offset of the requests that are recomputed; what comes from earlier ones is only counted.
        cut: requests from here on do not count.
        repeats: a batch that was not committed may stand twice (at least once).

    Attributes:
        matched: what was found as it must be.
        unchecked: what may have stood in a gap.
        before_start: what comes from requests before `start`.
        repeated: what stands there again, where that is allowed.
    """

    def __init__(self, what: str, found: Iterator[FoundOrGap], start: int, cut: int, *, repeats: bool) -> None:
        self.matched = self.unchecked = self.before_start = self.repeated = 0
        self._what = what
        self._found = found
        self._next: Found | None = None
        self._in_gap = False
        self._ended = False
        self._start = start
        self._cut = cut
        self._latest = -1  # request of the last one taken
        self._latest_keys: set[bytes | None] = set()  # of what was taken of it
        self._recent = _Recent() if repeats else None

    def expect(self, wanted: Wanted) -> Found | None:
        """Take the next one, which must be this; None where it may have stood in a gap.

        Raises:
            Difference: it is missing, differs, or something stands before it that must not.
        """
        while (found := self._peek()) is not None and self._stands_before(found, wanted):
            self._unwanted(found)
        if found is None or found.source_offset > wanted.source_offset:
            if self._in_gap:
                self.unchecked += 1
                return None
            next_one = "nothing follows" if found is None else f"the next one is {found.place}"
            raise Difference(f"{wanted.source} must have {self._what}, but it is missing: {next_one}{_OTHERWISE}")
        compare(found, wanted)
        self._take(found)
        self.matched += 1
        if self._recent is not None:
            self._recent.add(wanted)
        return found

    def finish(self, consumed: int | None, stable: int) -> None:
        """Read to the end: nothing more may come from requests before the cut.

        Args:
            consumed: no request from here on is consumed, so that what stands below `stable` can't come from one; None
                where output comes before the consumed offsets.
            stable: an offset of the stream.

        Raises:
            Difference: something stands there that must not.
        """
        while (found := self._peek()) is not None:
            if found.source_offset < self._cut:
                self._unwanted(found)
                continue
            if consumed is not None and found.offset < stable and found.source_offset >= consumed:
                raise Difference(
                    f"{found.place} comes from request {found.source_offset}, but the group has consumed only the "
                    f"requests before {consumed}: its offsets were set back, or this was not written by a lane"
                )
            self._take(found)

    def _peek(self) -> Found | None:
        while self._next is None and not self._ended:
            item = next(self._found, None)
            if item is None:
                self._ended = True
            elif isinstance(item, Gap):
                self._in_gap = True
            else:
                self._next = item
        return self._next

    def _take(self, found: Found) -> None:
        if found.source_offset != self._latest:
            self._latest_keys.clear()
        self._latest = found.source_offset
        self._latest_keys.add(found.key)
        self._next = None
        self._in_gap = False

    def _stands_before(self, found: Found, wanted: Wanted) -> bool:
        if found.source_offset == wanted.source_offset:
            # A batch that ends amid a request's facts may stand there again from its beginning.
            return found.key != wanted.output.key and self._recent is not None and self._recent.holds(found)
        return found.source_offset < wanted.source_offset

    def _unwanted(self, found: Found) -> None:
        """Something from a request that is dealt with already, or gives none, or is not recomputed."""
        is_same = found.source_offset == self._latest
        is_doubled = found.source_offset < self._latest or (is_same and found.key in self._latest_keys)
        if found.source_offset < self._start and not is_doubled:
            self.before_start += 1
            self._take(found)
            return
        if self._recent is not None and (found.source_offset < self._start or self._recent.holds(found)):
            self.repeated += 1
            self._next = None
            return
        why = "stands there twice" if is_doubled else f"must not have {self._what}{_OTHERWISE}"
        raise Difference(f"{found.place}: request {found.source_offset} {why}")


class _Recent:
    """What may stand there again: all of the latest requests, as many as a batch may have."""

    def __init__(self) -> None:
        self._wanted: deque[Wanted] = deque()
        self._requests = 0

    def add(self, wanted: Wanted) -> None:
        """Keep one more; it is of the last request or a later one."""
        if not self._wanted or self._wanted[-1].source_offset != wanted.source_offset:
            self._requests += 1
        self._wanted.append(wanted)
        while self._requests > MAX_BATCH_RECORDS:
            gone = self._wanted.popleft()
            self._requests -= gone.source_offset != self._wanted[0].source_offset

    def holds(self, found: Found) -> bool:
        """Whether it is one of these.

        Raises:
            Difference: it would be, but for some byte.
        """
        for wanted in self._wanted:
            if wanted.source_offset == found.source_offset and wanted.output.key == found.key:
                compare(found, wanted)
                return True
        return False


def compare(found: Found, wanted: Wanted) -> None:
    """Hold one against the other, byte for byte.

    Raises:
        Difference: names the first byte that differs.
    """
    output = wanted.output
    if found.key != output.key:
        raise Difference(f"{found.place}: the key is {found.key!r}, recomputed from {wanted.source}: {output.key!r}")
    if found.value != output.value:
        raise Difference(
            f"{found.place}, recomputed from {wanted.source}: {_differing(found.value, output.value)}{_OTHERWISE}"
        )
    if found.headers is not None and found.headers != output.headers:
        raise Difference(
            f"{found.place}: the headers are {found.headers!r}, recomputed from {wanted.source}: {output.headers!r}"
        )


def _differing(found: bytes | None, wanted: bytes | None) -> str:
    if found is None or wanted is None:
        return f"the value is {_cut(found)}, and must be {_cut(wanted)}"
    shorter = min(len(found), len(wanted))
    place = next((at for at in range(shorter) if found[at] != wanted[at]), shorter)
    around = slice(max(0, place - _AROUND), place + _AROUND)
    return f"byte {place} of the value differs: {found[around]!r} must be {wanted[around]!r}"


def _cut(value: bytes | None) -> str:
    return "null" if value is None else repr(value[: 2 * _AROUND])
