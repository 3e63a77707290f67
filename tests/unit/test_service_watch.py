"""What a publisher that waits is told of the service: what has stopped it, what it waits for itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from schemas.answers import Readiness, Waiting
from service.service_watch import ServiceWatch

STOPPED = Waiting(component="lanes", detail="partition 2 stopped: too many dead letters in a row", stopped=True)
RESTORING = Waiting(component="lanes", detail="partition 1 restores its caches: next offset 7")


class Service:
    """Serves what it is told to."""

    def __init__(self) -> None:
        self.answer: bytes = b""
        self.asked = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked += 1
                assert self.path == "/readyz"
                self.send_response(200 if b'"ready":true' in service.answer else 503)
                self.end_headers()
                self.wfile.write(service.answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def waits_for(self, *waiting: Waiting) -> None:
        self.answer = Readiness(ready=not waiting, waiting=list(waiting)).model_dump_json().encode()


@pytest.fixture
def service() -> Iterator[Service]:
    one = Service()
    thread = threading.Thread(target=one.server.serve_forever)
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()
    thread.join()


def test_a_lane_that_stopped_makes_waiting_vain(service: Service) -> None:
    told: list[str] = []
    watch = ServiceWatch(service.url, told.append)
    service.waits_for(RESTORING, STOPPED)
    assert watch.look(4.9) is None
    assert service.asked == 0  # it may well be busy
    assert watch.look(5.0) == f"the lanes take no more: {STOPPED.detail}"
    assert told == []


def test_what_may_pass_is_told_once_and_waited_for(service: Service) -> None:
    told: list[str] = []
    watch = ServiceWatch(service.url, told.append)
    service.waits_for(RESTORING)
    assert [watch.look(waited) for waited in (5.0, 5.1, 9.9, 10.0)] == [None] * 4
    assert service.asked == 2
    assert told == [f"waiting for the service, which waits itself: lanes: {RESTORING.detail}"]
    assert watch.look(0.1) is None  # something was consumed
    assert watch.look(5.0) is None
    assert service.asked == 3


@pytest.mark.parametrize("answer", [b'{"ready":true,"waiting":[]}', b"<html>", b""])
def test_a_service_that_waits_for_nothing_or_says_nothing_is_waited_for(service: Service, answer: bytes) -> None:
    service.answer = answer
    watch = ServiceWatch(service.url, pytest.fail)
    assert watch.look(5.0) is None
    assert service.asked == 1


def test_no_service_is_waited_for() -> None:
    assert ServiceWatch("http://127.0.0.1:1", pytest.fail).look(5.0) is None
