"""The format `weka`: agent sessions as kv-cache-tester keeps them, one JSON object a session."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from litehit.counted import counted
from litehit.curves import Int64Array
from litehit.request import Request
from litehit.time_units import NS_PER_S
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext, shown, time_of
from service.formats.fields import integer, key_list, read_object, text, time_ns
from service.formats.naming import STATED, Naming
from service.formats.number_text import NumberText
from service.formats.trace_format import TraceFormat

DEFAULT_BLOCK_SIZE_TOKENS = 64
_SUBAGENT = "subagent"
_LOCAL, _GLOBAL = "local", "global"


class _Leaf(NamedTuple):
    """An entry of a session.

    Attributes:
        where: its place, such as `requests[3].requests[0]`.
        fields: its members.
    """

    where: str
    fields: dict[str, Any]


class WekaFormat(TraceFormat):
    """Prefix keys of full blocks; times are seconds from the session's start, those of a sub-agent too.

    A record is a session of one request: what a producer sends request by request, and what `read_session` makes of
    longer ones. Keys of scope `local` are made global by a permutation of all keys that the session's id chooses:
    inside a session they stay apart, and two sessions meet as seldom as two hashes do.
    """

    name = "weka"

    def __init__(self, naming: Naming = STATED) -> None:
        self._naming = naming

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        session = read_object(record)
        leaves = list(_leaves(session))
        if len(leaves) != 1:
            raise FormatError(
                Reason.INVALID_FIELD,
                f"the record is a session of {counted(len(leaves), 'request')}, and a record holds one; "
                f"publish the sessions' file or folder, which puts their requests in order of time",
            )
        where, fields = leaves[0]
        with _at(where):
            session_id = text(session, "id")
            keys = key_list(fields, "hash_ids")
            if _is_local(session):
                keys = _made_global(keys, session_id)
            return Request(
                instance_id=self._naming.instance_of(None, {**session, **fields}, context),
                trace_id=f"{session_id or self.name}-{context.position}",
                timestamp_ns=time_of(time_ns(fields, "t", NS_PER_S), context, "t"),
                block_keys=keys,
                input_token_len=_length(fields),
                trace_block_size_tokens=_block(session),
            )


class SessionOfOne(NamedTuple):
    """A request of a session, by itself.

    Attributes:
        timestamp_ns: its time.
        record: a session that holds nothing else.
        fault: what is wrong with it, told with its place in the session; None where it can be read.
    """

    timestamp_ns: int
    record: bytes
    fault: FormatError | None


class Session(NamedTuple):
    """A session as a file holds it.

    Attributes:
        local_id: its id where its keys are local to it; None where they are global.
        requests: each by itself, those of sub-agents included, in the order in which they stand.
    """

    local_id: str | None
    requests: Iterator[SessionOfOne]


def read_session(record: bytes, naming: Naming = STATED) -> Session:
    """Split a session; the place of a request that can't be read is known only here, so that is told here.

    Args:
        record: the bytes.
        naming: what it looks at goes with each request.

    Raises:
        FormatError: the record is no session, or a request has no time; also while its requests are iterated.
    """
    session = read_object(record)
    return Session(text(session, "id") if _is_local(session) else None, _sessions_of_one(session, naming))


def _sessions_of_one(session: dict[str, Any], naming: Naming) -> Iterator[SessionOfOne]:
    own = {name: session[name] for name in ("id", "block_size", "hash_id_scope") if name in session}
    shared = naming.keep(session) | own
    for where, fields in _leaves(session):
        with _at(where):
            time = time_ns(fields, "t", NS_PER_S)
            if time is None:
                raise FormatError(Reason.TIME_MISSING, "t is absent; add it")
        kept = naming.keep(fields) | {name: fields[name] for name in ("t", "in", "hash_ids") if name in fields}
        yield SessionOfOne(time, _written({**shared, "requests": [kept]}), _fault(session, where, fields))


def _fault(session: dict[str, Any], where: str, fields: dict[str, Any]) -> FormatError | None:
    try:
        block = _block(session)
        with _at(where):
            keys, length = len(key_list(fields, "hash_ids")), _length(fields)
            if length and keys != length // block:
                raise FormatError(
                    Reason.LENGTH_MISMATCH,
                    f"hash_ids has {counted(keys, 'key')}, but in = {length} has "
                    f"{counted(length // block, 'full block')} of {counted(block, 'token')}; "
                    f"send one key for each full block and none for a partial one, or state the session's block_size",
                )
    except FormatError as error:
        return error
    return None


_MARK = uuid4().hex  # so that no text of a session is taken for it


def _written(session: dict[str, Any]) -> bytes:
    """As JSON, with each number as it was written: `json` itself writes no `NumberText`."""
    numbers: list[str] = []

    def mark(number: NumberText) -> str:
        numbers.append(number.text)
        return _MARK

    head, *rest = json.dumps(session, default=mark).split(f'"{_MARK}"')
    return "".join((head, *chain.from_iterable(zip(numbers, rest, strict=True)))).encode()


def _length(fields: dict[str, Any]) -> int:
    return integer(fields, "in", minimum=0)


def _block(session: dict[str, Any]) -> int:
    return integer(session, "block_size", 1, DEFAULT_BLOCK_SIZE_TOKENS)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """What is refused in the block is told with its place."""
    try:
        yield
    except FormatError as error:
        raise FormatError(error.reason, f"{where}: {error}") from None


def _leaves(session: dict[str, Any]) -> Iterator[_Leaf]:
    """The requests of a session in the order in which they stand."""
    under_way = [_requests("", session)]
    while under_way:
        entry = next(under_way[-1], None)
        if entry is None:
            under_way.pop()
        elif entry.fields.get("type") == _SUBAGENT:
            under_way.append(_requests(f"{entry.where}.", entry.fields))
        else:
            yield entry


def _requests(prefix: str, holder: dict[str, Any]) -> Iterator[_Leaf]:
    requests = holder.get("requests")
    if not isinstance(requests, list):
        raise FormatError(Reason.INVALID_FIELD, f"{prefix}requests = {shown(requests)} is refused; send a list")
    for position, fields in enumerate(requests):
        where = f"{prefix}requests[{position}]"
        if not isinstance(fields, dict):
            raise FormatError(Reason.INVALID_FIELD, f"{where} = {shown(fields)} is refused; send an object")
        yield _Leaf(where, fields)


def _is_local(session: dict[str, Any]) -> bool:
    scope = session.get("hash_id_scope")
    if isinstance(scope, str) and scope in {_LOCAL, _GLOBAL}:
        return scope == _LOCAL
    raise FormatError(
        Reason.INVALID_FIELD, f"hash_id_scope = {shown(scope)} is refused; send {_LOCAL!r} or {_GLOBAL!r}"
    )


def _made_global(keys: Int64Array, session_id: str | None) -> Int64Array:
    if session_id is None:
        raise FormatError(Reason.INVALID_FIELD, "id is absent, and the keys are local to their session; add the id")
    salt = int.from_bytes(hashlib.blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    # The finaliser of splitmix64, which is a permutation of 64-bit words.
    mixed = keys.view(np.uint64) + np.uint64(salt)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)
