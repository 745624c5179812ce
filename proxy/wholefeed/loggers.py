"""The loggers of the package: silent until whoever runs it has configured structlog.

log = get_logger()
log.info("feed.published", feed=1)      # wholefeed.logs lists the events

The command line configures structlog (`wholefeed.logs`). A program that imports the library may, and then the
events go where its own do. As structlog comes, it prints to standard output, which is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, cast

import structlog
from structlog.typing import BindableLogger, Context, EventDict, Processor, WrappedLogger


def get_logger() -> Any:
    """Return a logger that looks, each time that it is used, whether structlog has been configured."""
    wrapper = cast("type[BindableLogger]", _bound)  # structlog calls it, and asks no more of it
    return structlog.wrap_logger(None, wrapper_class=wrapper)


def _bound(logger: WrappedLogger, processors: Iterable[Processor], context: Context) -> BindableLogger:
    if not structlog.is_configured():
        return structlog.BoundLogger(logger, [_drop], context)
    wrapper = structlog.get_config()["wrapper_class"]
    return cast("BindableLogger", wrapper(logger, processors=processors, context=context))


def _drop(_logger: WrappedLogger, _method: str, _event: EventDict) -> NoReturn:
    raise structlog.DropEvent
