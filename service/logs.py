"""Log lines of the service: structured events to stderr, for a person or for a machine."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor

from service.settings import LogFormat, Settings

_LEVELS = logging.getLevelNamesMapping()


def configure_logs(settings: Settings) -> None:
    """Send every log line of this process to stderr in the form and from the level that the settings name.

    Lines of libraries that use `logging` (uvicorn) take the same form, from `warning` upwards.
    """
    level = _LEVELS[settings.log_level.upper()]
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = (
        [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
        if settings.log_format is LogFormat.JSON
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
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
