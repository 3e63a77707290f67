"""What holds up a publisher that waits for the lanes, as the process that runs them says."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError

from pydantic import ValidationError

from schemas.answers import Readiness

_ASK_SECONDS = 5.0
_TIMEOUT_SECONDS = 2.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy can't reach this host's loopback


class ServiceWatch:
    """Asks `/readyz` now and then while nothing is consumed.

    Args:
        url: of the process's API.
        tell: is told once of what it waits for, where that may yet pass.
    """

    def __init__(self, url: str, tell: Callable[[str], object]) -> None:
        self._readyz = f"{url.rstrip('/')}/readyz"
        self._tell = tell
        self._told = False
        self._ask_at = _ASK_SECONDS

    def look(self, waited: float) -> str | None:
        """Why waiting is of no use; None where it may be.

        Args:
            waited: seconds since anything was consumed.
        """
        if waited < _ASK_SECONDS:
            self._ask_at = _ASK_SECONDS
            return None
        if waited < self._ask_at:
            return None
        self._ask_at = waited + _ASK_SECONDS
        readiness = self._ask()
        if readiness is None or not readiness.waiting:
            return None
        if stopped := [one.detail for one in readiness.waiting if one.stopped and one.component == "lanes"]:
            return f"the lanes take no more: {'; '.join(stopped)}"
        if not self._told:
            self._told = True
            details = "; ".join(f"{one.component}: {one.detail}" for one in readiness.waiting)
            self._tell(f"waiting for the service, which waits itself: {details}")
        return None

    def _ask(self) -> Readiness | None:
        """None where there is no answer: the broker is asked as well, and says so if the process has ended."""
        try:
            with _DIRECT.open(self._readyz, timeout=_TIMEOUT_SECONDS) as answer:
                return _parsed(answer.read())
        except HTTPError as error:  # not ready is 503
            with error:
                return _parsed(error.read())
        except (OSError, HTTPException):
            return None


def _parsed(content: bytes) -> Readiness | None:
    try:
        return Readiness.model_validate_json(content)
    except ValidationError:
        return None
