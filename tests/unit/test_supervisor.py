"""Roles are stopped last started first, and the death of one ends them all with its name."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from service.errors import TopicsError
from service.supervisor import RoleFailed, Supervisor, stopping_on_signals


class Roles:
    """Roles that wait for their stop event and note when they end."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def waiting(self, name: str) -> Callable[[threading.Event], None]:
        def work(stop: threading.Event) -> None:
            assert stop.wait(10)
            self.ended.append(name)

        return work


def _start(supervisor: Supervisor, roles: Roles, *names: str) -> None:
    for name in names:
        supervisor.start(name, roles.waiting(name))


def test_roles_are_stopped_last_started_first() -> None:
    supervisor, roles = Supervisor(), Roles()
    _start(supervisor, roles, "api", "archive", "lanes")
    supervisor.request_stop("test")
    supervisor.run()
    assert roles.ended == ["lanes", "archive", "api"]


def test_a_role_is_drained_when_its_sources_have_stopped() -> None:
    supervisor, roles = Supervisor(), Roles()
    supervisor.start("archive", roles.waiting("archive"), drain=lambda: roles.ended.append("drained"))
    _start(supervisor, roles, "lanes")
    supervisor.request_stop("test")
    supervisor.run()
    assert roles.ended == ["lanes", "drained", "archive"]


def test_a_dead_role_is_not_drained() -> None:
    supervisor = Supervisor()
    drained: list[str] = []
    supervisor.start("archive", lambda _: None, drain=lambda: drained.append("archive"))
    with pytest.raises(RoleFailed):
        supervisor.run()
    assert drained == []


def test_an_error_ends_the_others_and_names_the_role() -> None:
    supervisor, roles = Supervisor(), Roles()
    _start(supervisor, roles, "api")

    def fail(_: threading.Event) -> None:
        raise TopicsError("the topic is gone")

    supervisor.start("lanes", fail)
    with pytest.raises(RoleFailed, match="the role lanes ended: the topic is gone") as failure:
        supervisor.run()
    assert failure.value.role == "lanes"
    assert isinstance(failure.value.__cause__, TopicsError)
    assert roles.ended == ["api"]


def test_a_role_that_returns_unasked_has_failed() -> None:
    supervisor = Supervisor()
    supervisor.start("archive", lambda stop: None)
    with pytest.raises(RoleFailed, match="archive ended: it returned although nobody asked"):
        supervisor.run()


def test_a_failure_while_stopping_is_a_failure() -> None:
    supervisor = Supervisor()

    def fail_at_the_end(stop: threading.Event) -> None:
        stop.wait(10)
        raise OSError("disk full")

    supervisor.start("archive", fail_at_the_end)
    supervisor.request_stop("test")
    with pytest.raises(RoleFailed, match="archive ended: OSError: disk full"):
        supervisor.run()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_and_the_next_one_would_kill(number: signal.Signals) -> None:
    supervisor, roles = Supervisor(), Roles()
    before = signal.getsignal(number)
    with stopping_on_signals(supervisor):
        _start(supervisor, roles, "api")
        os.kill(os.getpid(), number)
        supervisor.run()
        assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert roles.ended == ["api"]
    assert signal.getsignal(number) is before
