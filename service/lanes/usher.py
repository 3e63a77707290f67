"""Leads seats to their lanes: one restore at a time, while the loop that calls goes on with the other lanes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

import structlog
from confluent_kafka import KafkaException

from service.archive.errors import StoreError
from service.errors import CannotRestore, CoreChanged
from service.lanes.backoff import Backoff
from service.lanes.requests_consumer import RequestsConsumer
from service.lanes.restorer import Restored, Restorer
from service.lanes.seat import Phase, Seat
from service.lanes.standings import Standings

log = structlog.get_logger()

_BACKOFF_SECONDS = (0.0, 0.1, 0.5, 1.0, 5.0)  # before a seat begins again, by consecutive aborts


class Usher:
    """Begins the seats that wait, and those that a reset may have mended.

    Args:
        consumer: reads on.
        standings: tell what is committed, and how far the logs go.
        restorer: makes the lanes.
        begun: called when a seat reads.
    """

    def __init__(
        self,
        consumer: RequestsConsumer,
        standings: Standings,
        restorer: Restorer,
        begun: Callable[[Seat, Restored], None],
    ) -> None:
        self._consumer = consumer
        self._standings = standings
        self._restorer = restorer
        self._begun = begun
        self._current: tuple[Seat, Future[Restored]] | None = None
        self._backoff = Backoff(_BACKOFF_SECONDS)
        self._not_before = 0.0

    def step(self, seats: Mapping[int, Seat]) -> None:
        """Go on with the restore under way, or let the next begin; returns at once."""
        if self._current is not None:
            seat, future = self._current
            if future.done():
                self._current = None
                # Not given up meanwhile, nor stopped.
                if seats.get(seat.partition) is seat and seat.phase is Phase.RESTORING:
                    self._finish(seat, future)
            return
        now = time.monotonic()
        # Each that fails gets another time, so that none takes every turn.
        first = min(seats.values(), key=Seat.ready_since, default=None)
        if first is not None and first.ready_since() <= now >= self._not_before:
            self._start(first)

    def back_off(self) -> None:
        """A batch was aborted: wait a little before the next restore, longer each time."""
        self._not_before = time.monotonic() + self._backoff.failed()

    def succeeded(self) -> None:
        """A batch was handed over: the aborts before it are forgotten."""
        self._backoff.succeeded()

    def stop_seat(self, seat: Seat, error: str, *, may_try_again: bool = False) -> None:
        """End a seat's work; the others go on."""
        if seat.error != error:  # a lane that tries again says the same again
            log.error("lane_stopped", partition=seat.partition, error=error)
        seat.stop(error, may_try_again=may_try_again)
        self._consumer.pause([seat.partition])

    def refuse(self, seat: Seat, error: CoreChanged) -> None:
        """Stop a seat whose caches, once they were replayed, are of another configuration than the registry's."""
        sentence = str(self._restorer.refuse(seat.partition, error.changes))
        self.stop_seat(seat, sentence, may_try_again=True)

    def _start(self, seat: Seat) -> None:
        seat.restore()
        self._current = seat, self._restorer.start(seat.partition, self._standings.ask)

    def _finish(self, seat: Seat, future: Future[Restored]) -> None:
        try:
            restored = future.result()
            seat.end_offset = restored.end
            self._consumer.read_from(seat.partition, restored.plan.start)
            seat.begin(restored)
        except CannotRestore as error:
            self.stop_seat(seat, str(error), may_try_again=True)
        except CoreChanged as error:
            self.refuse(seat, error)
        except StoreError as error:
            self._postpone(seat, str(error))
        except KafkaException as error:
            self._postpone(seat, error.args[0].str())
        except Exception as error:
            # A fault of ours: this lane halts, the others go on.
            log.exception("restore_failed", partition=seat.partition)
            self.stop_seat(seat, f"{type(error).__name__} while its caches were restored: {error}")
        else:
            self._begun(seat, restored)

    def _postpone(self, seat: Seat, error: str) -> None:
        log.warning("lane_waits", partition=seat.partition, error=error)
        seat.postpone()
