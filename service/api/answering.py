"""How an answer is sent: with a validator, so that a reader asks again for little, and compressed where it may be."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

import structlog
from anyio import fail_after
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from schemas.answers import AsOf, WindowAnswer
from service.api.as_of import AsOfAnswer, Lag, LastAsOf, window_answer, window_json
from service.api.index import FactIndex
from service.api.kept_answers import KeptAnswers
from service.api.parameters import FactsSelected, refuse_other_units
from service.api.selection import Selection
from service.api.windows import TimeWindow
from service.errors import ServiceError

JSON = "application/json"
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 4  # half the time of the default for a few percent more bytes
QUICK_NUMBERS = 128
"""Groups times capacities up to which an answer is made in the event loop: half a millisecond, or twice that where
other processes share the core."""

STALLED_SECONDS = 60.0
"""For how long a reader may take nothing of an answer that is being sent."""

_WORTH_KEEPING = 1 << 16  # bytes from which an answer is kept
_WORTH_IT = 1024  # bytes from which an answer is compressed
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class About:
    """What an answer says of itself.

    Attributes:
        asked: the window summed.
        facts: which facts were.
    """

    asked: TimeWindow
    facts: AsOfAnswer

    @property
    def window(self) -> WindowAnswer:
        """The window, as an answer shows it."""
        return window_answer(self.asked)

    @property
    def as_of(self) -> list[AsOf]:
        """Which facts were summed, by chain."""
        return self.facts.chains

    @property
    def json(self) -> bytes:
        """An object of both, as an answer ends with."""
        return b'{"window":' + window_json(self.asked) + b',"as_of":' + self.facts.json + b"}"


@dataclass(frozen=True, slots=True)
class Facts:
    """What calls are answered from.

    Attributes:
        index: sums of the facts.
        lag: asked at each call for how many facts each partition is behind its topic.
        last: what answers say of the facts.
        kept: large answers, which take long to make and are asked for by several readers.
    """

    index: FactIndex
    lag: Lag
    last: LastAsOf = field(default_factory=LastAsOf)
    kept: KeptAnswers = field(default_factory=KeptAnswers)

    def at_hand(self, request: Request, asked: FactsSelected, capacities: int) -> Selection | None:
        """The facts selected, where hits at so many capacities take no longer than the way to a worker thread and back.

        They are summed already, and no more than `QUICK_NUMBERS` numbers are read off; nothing is compressed.
        """
        if takes_gzip(request) or capacities * len(asked.instance_id) > QUICK_NUMBERS:
            return None
        return self.index.at_hand(asked.window, asked.instance_id, QUICK_NUMBERS // capacities)

    def answer(
        self,
        request: Request,
        asked: FactsSelected,
        make: Callable[[Selection, About], bytes | Iterator[bytes]],
        *,
        state: str = "",
        selection: Selection | None = None,
    ) -> Response:
        """Answer a call with JSON; 304 where the reader has that answer already.

        Args:
            request: the call.
            asked: which facts it is about.
            make: makes the document of the facts selected; an iterator is streamed.
            state: what else the answer depends on.
            selection: the facts selected, where they are at hand.
        """
        reached = self.index.as_of()
        window = asked.window
        refuse_other_units(request, window, self.index.earliest_ns)
        # Before anything is summed; but `*` is any answer, and whether there is one is not known yet.
        if _header(request, b"if-none-match", "*") != "*":
            now = self.last.answer(reached, self.lag())
            known = not_modified(request, validators(_entity_tag(request, now, state)))
            if known is not None:
                return known
        if selection is None:
            selection = self.index.select(window, asked.instance_id or None)
        about = About(window, self.last.answer(selection.as_of, self.lag()))
        headers = validators(_entity_tag(request, about.facts, state))
        if (known := not_modified(request, headers)) is not None:
            return known
        document = self.kept.get(headers["ETag"]) or make(selection, about)
        if not isinstance(document, bytes):
            return stream(request, document, JSON, headers)
        if len(document) >= _WORTH_KEEPING:
            self.kept.put(headers["ETag"], document)
        return send(request, document, headers)


def state_tag(request: Request, state: bytes) -> str:
    """A weak validator: the same for the same question about the same state."""
    asked = request.scope["path"].encode() + b"?" + request.scope["query_string"]
    digest = hashlib.blake2b(b"%b %b %b" % (request.app.version.encode(), asked, state), digest_size=16)
    return f'W/"{digest.hexdigest()}"'


def validators(tag: str) -> dict[str, str]:
    """The headers of an answer with a validator."""
    # Any cache may keep it, and must ask again: facts arrive.
    return {"ETag": tag, "Cache-Control": "no-cache"}


def not_modified(request: Request, headers: dict[str, str]) -> Response | None:
    """304 where the reader says that it has the answer with this validator."""
    known = [one.strip() for one in _header(request, b"if-none-match").split(",")]
    if headers["ETag"] in known or "*" in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return None


def send(request: Request, body: bytes, headers: dict[str, str], media_type: str = JSON) -> Response:
    """A whole answer. Compressed here, in the worker thread, and not in the event loop."""
    headers = {**headers, "Vary": "Accept-Encoding"}
    if len(body) >= _WORTH_IT and takes_gzip(request):
        body = b"".join(_gzipped([body]))
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type=media_type)


def stream(request: Request, parts: Iterator[bytes], media_type: str, headers: dict[str, str]) -> Response:
    """An answer made as it is sent, a part at a time, each in a worker thread."""
    headers = {**headers, "Vary": "Accept-Encoding"}
    if takes_gzip(request):
        parts = _gzipped(parts)
        headers["Content-Encoding"] = "gzip"
    return _Stream(parts, headers=headers, media_type=media_type)


def takes_gzip(request: Request) -> bool:
    """Whether the reader says that it takes gzip."""
    for one in _header(request, b"accept-encoding").lower().split(","):
        coding, _, weight = one.replace(" ", "").partition(";q=")
        if coding == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


def _header(request: Request, name: bytes, default: str = "") -> str:
    """The first header of a name: straight from those received, as each call asks for a few."""
    return next((value.decode("latin-1") for known, value in request.scope["headers"] if known == name), default)


def _entity_tag(request: Request, as_of: AsOfAnswer, state: str) -> str:
    return state_tag(request, as_of.json + state.encode())


def _gzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


class _Stream(StreamingResponse):
    """An answer in parts that is given up where its reader stops reading: it may hold one of few turns."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_soon(message: Message) -> None:
            with fail_after(STALLED_SECONDS):
                await send(message)

        try:
            await super().__call__(scope, receive, send_soon)
        except (TimeoutError, ClientDisconnect):
            _log.warning("answer_not_taken", path=scope["path"], waited_seconds=STALLED_SECONDS)
        except ServiceError as error:
            # It is too late for a problem document. The server closes the connection of what was not sent to its end.
            _log.error("answer_cut_off", path=scope["path"], error=str(error))
