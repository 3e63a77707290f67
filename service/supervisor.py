"""The threads of a process: started together, stopped in order, and none may die unnoticed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType

import structlog

from litehit.errors import LiteHitError
from service.errors import ServiceError

log = structlog.get_logger()


class RoleFailed(ServiceError):
    """A role ended by itself.

    Attributes:
        role: its name.
    """

    def __init__(self, role: str, error: BaseException | None) -> None:
        self.role = role
        if error is None:
            why = "it returned although nobody asked it to"
        else:
            why = str(error) if isinstance(error, LiteHitError) else f"{type(error).__name__}: {error}"
        super().__init__(f"the role {role} ended: {why}")


@dataclass(frozen=True, slots=True)
class _Member:
    role: str
    thread: threading.Thread
    stop: threading.Event
    drain: Callable[[], None]


class Supervisor:
    """Runs functions in threads, each until its own stop event is set.

    The first to end by itself, with or without an error, ends the process: `run` stops the others and raises.
    """

    def __init__(self) -> None:
        self._members: list[_Member] = []
        self._failed: set[str] = set()
        # A signal handler may put into a SimpleQueue at any instant; the locks of an Event are not made for that.
        self._wake: SimpleQueue[str | RoleFailed] = SimpleQueue()

    def start(
        self, role: str, work: Callable[[threading.Event], None], drain: Callable[[], None] = lambda: None
    ) -> None:
        """Start a role.

        Args:
            role: its name.
            work: what it does; it must return soon after the event it is given is set.
            drain: called before that event is set, when those started later have stopped; may wait for what they left.
        """
        stop = threading.Event()
        thread = threading.Thread(target=self._work, args=(role, work, stop), name=role, daemon=True)
        self._members.append(_Member(role, thread, stop, drain))
        thread.start()
        log.info("role_started", role=role)

    def request_stop(self, reason: str) -> None:
        """Make `run` stop every role; from any thread or a signal handler."""
        self._wake.put(reason)

    def run(self) -> None:
        """Wait for a request to stop or for a failure, then stop the roles, last started first.

        Raises:
            RoleFailed: a role ended by itself, or failed while it was stopped.
        """
        reasons = [self._wake.get()]
        log.info("stopping", reason=str(reasons[0]))
        for member in reversed(self._members):
            if member.role not in self._failed:
                member.drain()
            member.stop.set()
            member.thread.join()
            log.info("role_stopped", role=member.role)
        while not self._wake.empty():
            reasons.append(self._wake.get())
        for reason in reasons:
            if isinstance(reason, RoleFailed):
                raise reason

    def _work(self, role: str, work: Callable[[threading.Event], None], stop: threading.Event) -> None:
        error: BaseException | None = None
        try:
            work(stop)
        except BaseException as raised:
            error = raised
        if error is not None or not stop.is_set():
            failure = RoleFailed(role, error)
            failure.__cause__ = error
            log.error("role_failed", role=role, exc_info=None if isinstance(error, LiteHitError) else error)
            self._failed.add(role)
            self._wake.put(failure)


@contextmanager
def stopping_on_signals(supervisor: Supervisor) -> Iterator[None]:
    """SIGTERM and SIGINT ask the supervisor to stop; the second signal ends the process at once."""

    def handle(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        supervisor.request_stop(signal.Signals(number).name)

    before = {each: signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
