"""Log lines of the service: structured events to stderr, for a person or for a machine."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

import structlog
from structlog.typing import Processor

from service.settings import KAFKA_LOGGER, LogFormat, Settings

_REPEAT_SECONDS = 30.0
_LEVELS = logging.getLevelNamesMapping()
# Without the variables of each frame: they are thousands of lines, and may hold a password.
_TRACEBACKS = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


def configure_logs(settings: Settings) -> None:
    """Send every log line of this process to stderr in the form and from the level that the settings name.

    Lines of libraries that use `logging` (uvicorn, librdkafka) take the same form, from `warning` upwards.
    """
    level = _LEVELS[settings.log_level.upper()]
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = (
        [_TRACEBACKS, structlog.processors.JSONRenderer()]
        if settings.log_format is LogFormat.JSON
        else [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    # A broker that is away is told by each client at each attempt to reach it.
    logging.getLogger(KAFKA_LOGGER).addFilter(Seldom())


class Seldom(logging.Filter):
    """Lets a line pass once in half a minute, by its first argument: librdkafka's kind of event.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._passed: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it has been quiet long enough."""
        kind = record.args[0] if isinstance(record.args, tuple) and record.args else record.msg
        now = self._clock()
        if now - self._passed.get(kind, now - _REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        self._passed[kind] = now
        return True
