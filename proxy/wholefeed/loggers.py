"""The loggers of the package: silent until whoever runs it has configured structlog.

log = get_logger()
log.info("feed.published", feed=1)      # wholefeed.logs lists the events

The command line configures structlog (`wholefeed.logs`). A program that imports the library may, and then the
events go where its own do. As structlog comes, it prints to standard output, which is the caller's.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import structlog
from structlog.contextvars import STRUCTLOG_KEY_PREFIX
from structlog.typing import EventDict, WrappedLogger

REQUEST_ID: Final[ContextVar[str]] = ContextVar(f"{STRUCTLOG_KEY_PREFIX}request_id")
"""Of the request that something is done for: a field of its lines, as if it were bound by structlog's
`bind_contextvars`, which takes ten times as long."""


def get_logger() -> Any:
    """Return a logger that looks, each time that it is used, whether structlog has been configured."""
    return _PackageLogger()


class _PackageLogger:
    """Hands what is asked of it to a logger of structlog's, which is made anew when the configuration is.

    structlog's own proxy makes one for each line, which costs more than half of what the line does.
    """

    def __init__(self) -> None:
        self._made_for: dict[str, Any] = {}
        self._made: Any = _SILENT

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current(), name)

    def laid_out(self, event: str, facts: str) -> None:
        """Log an event of level info whose facts are the members of a JSON object, laid out by the caller.

        A logger whose lines are JSON has a `log_json` that takes them as they are, and says whether it did.
        For any other they are read again.
        """
        logger = self._current()
        log_json = getattr(type(logger), "log_json", None)  # of the class: some loggers have any method
        if log_json is None or not log_json(logger, event, facts):
            logger.info(event, **json.loads(f"{{{facts}}}"))

    def _current(self) -> Any:
        if not structlog.is_configured():
            return _SILENT
        configured = structlog.get_config()
        if configured != self._made_for:
            self._made = structlog.get_logger().bind()
            self._made_for = configured
        return self._made


def _drop(_logger: WrappedLogger, _method: str, _event: EventDict) -> NoReturn:
    raise structlog.DropEvent


_SILENT: Final = structlog.BoundLogger(None, [_drop], {})
