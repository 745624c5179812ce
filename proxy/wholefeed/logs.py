"""Logging: one line per event, JSON or console.

A module has `log = get_logger()`, and calls `log.info("feed.published", feed=1)`. Only the command line
configures where that goes (`configure_logging`). A program that imports the library may configure structlog,
and then the events go where its own do; until then the loggers are silent, since structlog by default prints
to standard output, which is the caller's.

Event names are `noun.past_participle`, fixed strings, never formatted; every variable part is a field, with
its unit in the name. Neither credentials nor the query of a publisher's URL are fields.

Events
    server.started      host, port, version; socket where it listens on one as well
    server.stopped
    supervisor.unreachable  error: systemd could not be told something
    token.created       path: an access token was made (docs/faults.md row 81); its value is never logged
    token.tightened     path: others could read the token's file; now they cannot
    migration.applied   name of the last, and migrations: how many were, all that there are on a first start
    store.tightened     path: others could use this file of the database; now they cannot
    store.exposed       path, reason: others can use it, and that could not be changed
    store.failed        the database refused a write
    store.unpurged      reason: old rows could not be deleted this time
    store.unfinished    writes: how many were given up at the end, since the database took too long
    store.full          the volume is full or cannot be written
    store.damaged       error: the file is malformed; it is not written to any more until a restart
    store.recovered     it can be written again
    notices.lost        reason: no notices of replicas until the database answers again
    notices.resumed     notices arrive again
    request.answered    method, path, url, client (address, IPv6 network or "unix"), user_agent, status,
                        duration_s, request_id; for a feed also feed, state, documents, entries; of a
                        subscription list opml: what became of how many; slug when it
                        is an error; aborted when it was cut off
    answer.cut          feed, slug: what was being sent could not be read to its end, and the connection was
                        broken off: the reader sees that it is not whole
    request.failed      an error of the proxy's own, with its traceback
    request.rejected    error, status: it is not HTTP; no part of it is shown, it may hold a token
    document.fetched    outcome, url, host, hops, status, wire_bytes, body_bytes, duration_s
    document.failed     the same, and slug: it could not be had, or is not readable as a feed; a warning, but
                        for what was guessed, or asked for to learn whether it is there
    target.refused      the same, instead: the guard refused what a reader, a redirect or a link named; with
                        feed, as both others, when it is for a known feed: its publisher leads there
    document.unreadable feed, document, slug: a newer parser cannot read a stored body
    walk.started        feed
    walk.ended          feed, ending, documents, fetched, duration_s
    refresh.failed      feed: an error of the proxy's own, with its traceback
    feed.published      feed, state, documents, entries, notes
    feed.stale          feed, slug: the publisher did not give the feed; what is stored is served
    feed.unkept         feed, slug: the store could not keep what a refresh brought
    feed.unpublished    feed, slug: the store could not keep a publication while a walk runs; the next one may
    feed.evicted        feed, used_bytes: the store was larger than store.max_bytes
    entry.forgotten     feed
    feed.continued      feed, entries, new: it has those of another feed
    feed.forgotten      feed
    import.taken        feed, outcome (taken, or known), entries, new: a document that somebody had kept
    import.refused      feed, slug: it is not readable, or not this feed's
    import.removed      feed, documents: they were taken back
    host.rested         host, port, slug, seconds: it failed so often in a row that it is left alone
    host.recovered      host, port: it answers again
    hosts.unshared      reason: replicas cannot tell each other what they ask of hosts; each goes on by itself
    hosts.shared        seconds: they can again, so long after the last time that they could not
    feed.polled         feed, duration_s: it was refreshed unasked; slug when that failed
    feed.adopted        feed: the replica that refreshed it has ended; this one goes on
    replay.begun        feed: it was asked for from its beginning for the first time; its entries are numbered
    replay.failed       feed, reason: they could not be numbered; at the next request it is tried again
    replica.unheard     replica, reason: the others could not be told that this one is alive
    replica.isolated    replica, stopped: they may take it for dead; it has stopped so many things, and begins
                        again under another name
    replica.forgotten   replica: the database has lost its leases, and every replica begins again
    background.failed   name: house-keeping, polling, archive, lists, hosts or taking-over ended by an error,
                        with its traceback
    polling.paused      reason: the store could not say which feeds are due
    archive.failed      slug: the web archive could not be asked; seconds for which it is left alone
    archive.paused      slug: the store could not say, or keep, what the archive is asked for
    lists.looked        feed, pages, entries, missing, requests, duration_s: its publisher's pages were looked
                        at; pages are those of the list that was found
    lists.unkept        feed, slug: what they list could not be kept; it is looked for again in an hour
    lists.failed        feed: a look ended by an error, with its traceback
    lists.paused        slug: the store could not say whose pages are due
    memento.unusable    slug: a copy in it that cannot be read, or does not say that it is of the feed
    connections.reaped  connections: how many idle ones were closed
    connections.crowded closed: how many idle and half-open ones had to make room within a second; unaccepted:
                        times that the system had no room for one
    library.logged      logger, message: what a library says through the standard library's logging
    worker.unstarted    reason: large documents are worked on in the server's own process
    log.lost            lines: how many could not be written before this one
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted
from math import isfinite
from typing import Any, Final, NoReturn, TextIO

import structlog
from structlog.contextvars import STRUCTLOG_KEY_PREFIX
from structlog.typing import EventDict, Processor, WrappedLogger

from wholefeed.config.tables import LogConfig

# Loggers


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

REQUEST_ID: Final[ContextVar[str]] = ContextVar(f"{STRUCTLOG_KEY_PREFIX}request_id")
"""Of the request that something is done for: a field of its lines, as if it were bound by structlog's
`bind_contextvars`, which takes ten times as long."""

# How lines are made, and where they go


def configure_logging(config: LogConfig, stream: TextIO | None = None) -> None:
    """Set structlog and the standard library's logging up for the process. Call once, before anything logs.

    Args:
        config: The format (`auto` is console on a terminal and JSON otherwise) and the least level.
        stream: Where the lines go; None is standard output. One that cannot be written costs lines and
            nothing else: they are counted, and `log.lost` tells of them when it can be written again.
    """
    stream = sys.stdout if stream is None else stream
    level = logging.getLevelNamesMapping()[config.level.upper()]
    is_terminal = stream is not None and stream.isatty()  # a closed standard output is None
    is_console = config.format == "console" or (config.format == "auto" and is_terminal)
    rendering = _console(is_terminal) if is_console else [_render_json]
    lines = LineLogger(stream, lambda lost: _render(rendering, "warning", event="log.lost", lines=lost))
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *rendering],
        wrapper_class=_json_logger(level) if not is_console else structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_names: lines,
        cache_logger_on_first_use=True,
    )
    _relay_standard_logging(level)


def _render(rendering: Sequence[Processor], level: str, **event: object) -> str:
    made: Any = event
    for processor in rendering:
        made = processor(None, level, made)
    return str(made)


def _console(is_terminal: bool) -> list[Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        structlog.processors.format_exc_info,
        _hide_credentials,
        _escape_controls,
        structlog.dev.ConsoleRenderer(
            colors=is_terminal and "NO_COLOR" not in os.environ,
            exception_formatter=structlog.dev.plain_traceback,
        ),
    ]


def _render_json(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """Return the line, as structlog's last processor."""
    level = "warning" if method == "warn" else method
    what = event.pop("event", "")
    event.pop("level", None)
    if "exc_info" in event:
        event = _RENDER_EXCEPTION(logger, method, event)
    return json_line(level, str(what), event)


_RENDER_EXCEPTION: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)


def _json_logger(level: int) -> Any:
    """Return the class of the loggers whose lines `_render_json` makes.

    What every request writes goes the short way: each of structlog's steps is a call and a copy of the facts.
    """
    ordinary: Any = structlog.make_filtering_bound_logger(level)

    class JsonLogger(ordinary):  # type: ignore[misc]
        def info(self, event: str, *args: object, **facts: object) -> None:
            is_plain = not (args or self._context or "exc_info" in facts)
            if is_plain and self._processors[-1] is _render_json:
                self._logger.msg(
                    json_line("info", event, structlog.contextvars.merge_contextvars(None, "info", facts))
                )
            else:
                super().info(event, *args, **facts)

        def log_json(self, event: str, facts: str) -> bool:
            is_ours = self._processors[-1] is _render_json
            if is_ours:
                self._logger.msg(json_line_of("info", event, facts))
            return is_ours

    class QuietLogger(ordinary):  # type: ignore[misc]
        def log_json(self, event: str, facts: str) -> bool:
            return True

    return JsonLogger if level <= logging.INFO else QuietLogger


class LineLogger:
    """Writes rendered lines, and never raises: whoever logs has something else to do.

    It writes past the stream's buffer where there is a descriptor. A buffer would keep what could not be
    written, and with it the error, until the interpreter's end.

    Args:
        stream: Where the lines go; None is nowhere.
        tell_lost: Makes the line that tells how many were lost.
    """

    def __init__(self, stream: TextIO | None, tell_lost: Callable[[int], str]) -> None:
        self._stream = stream
        self._tell_lost = tell_lost
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._lock = threading.Lock()
        self._lost = 0
        self._is_torn = False
        try:
            self._descriptor = -1 if stream is None else stream.fileno()
        except (OSError, ValueError):
            self._descriptor = -1
        self._write = self._write_bytes if self._descriptor >= 0 else self._write_text

    def msg(self, line: str) -> None:
        """Write one line; when lines were lost before it, say so first."""
        with self._lock:
            if self._lost and self._write(self._tell_lost(self._lost)):
                self._lost = 0
            if self._lost or not self._write(line):
                self._lost += 1

    log = debug = info = warning = warn = error = critical = exception = fatal = msg

    def _write_text(self, line: str) -> bool:
        if self._stream is None:
            return False
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return False
        return True

    def _write_bytes(self, line: str) -> bool:
        """Write all of it, or remember that part of a line stands there, for the next not to continue it."""
        data = f"{line}\n".encode(self._encoding, "backslashreplace")
        if self._is_torn:
            data = b"\n" + data
        sent = 0
        try:
            while sent < len(data):
                sent += os.write(self._descriptor, data[sent:] if sent else data)
        except (OSError, ValueError):
            return False
        finally:
            if sent:
                self._is_torn = data[sent - 1 : sent] != b"\n"
        return True


def _relay_standard_logging(level: int) -> None:
    """Route aiohttp, asyncio and warnings through structlog; the access log is `request.answered`'s job."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Relay)]:
        root.removeHandler(handler)
    root.addHandler(_Relay())
    root.setLevel(max(level, logging.INFO))
    logging.captureWarnings(True)
    logging.getLogger("aiohttp.access").setLevel(logging.CRITICAL)
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # `notices.lost` and the counts tell it


class _Relay(logging.Handler):
    """Hands the records of libraries to structlog, so that every line has one form.

    Of a request that is no HTTP only the kind of error is handed on: the message and the traceback quote the
    request line, and with it the token and the publisher's query. That a reader has left is handed on not at
    all: its `request.answered` says so, and whoever opens connections would fill the log with tracebacks
    (docs/faults.md row 95a).
    """

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if record.name == "aiohttp.server" and _is_of_request(error):
            status = getattr(error, "code", 0) or None
            structlog.get_logger().info("request.rejected", error=type(error).__name__, status=status)
            return
        if record.name == "aiohttp.server" and isinstance(error, ConnectionError):
            return
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        structlog.get_logger().log(
            record.levelno, "library.logged", logger=record.name, message=message, exc_info=record.exc_info
        )


def _is_of_request(error: BaseException | None) -> bool:
    """Whether a request was no HTTP, or its body was not what its head promised."""
    # Whoever logs such an error has imported these; loggers are also for those who have no use for aiohttp.
    from aiohttp.http_exceptions import HttpProcessingError  # noqa: PLC0415
    from aiohttp.web import RequestPayloadError  # noqa: PLC0415

    return isinstance(error, HttpProcessingError | RequestPayloadError)


# An event as a line of JSON


def json_line(level: str, event: str, facts: EventDict) -> str:
    """Return the line of an event that happens now.

    json_line("info", "feed.stale", {"feed": 1, "slug": "timeout"})
    """
    return json_line_of(level, event, members(facts))


def json_line_of(level: str, event: str, text: str) -> str:
    """Return the line of an event whose facts are laid out already, as `members` does it.

        json_line_of("info", "feed.stale", '"feed": 1, "slug": "timeout"')

    When, how grave, what, then the facts, so that a line reads from its left. Whatever password stands in a
    URL is taken out of it.
    """
    if "@" in text:
        text = _without_userinfo(text)
    seconds, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    instant = f"{_second(seconds)}.{microseconds:06}Z"
    comma = ", " if text else ""
    return f'{{"timestamp": "{instant}", "level": "{level}", "event": {quoted(event)}{comma}{text}}}'


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """Return a second of the epoch as RFC 3339 writes it, without its fraction: the same for many lines."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def members(facts: Mapping[str, Any]) -> str:
    """Return what the encoder would between its braces, which takes half as long again.

    A name of a fact needs no escapes.
    """
    if type(facts) is LaidOut:
        return facts.text
    members = []
    for name, value in facts.items():
        kind = type(value)
        if kind is str:
            members.append(f'"{name}": {quoted(value)}')
        elif kind is int:
            members.append(f'"{name}": {value}')
        elif kind is float and isfinite(value):
            members.append(f'"{name}": {value!r}')
        elif value is None:
            members.append(f'"{name}": null')
        else:
            members.append(f'"{name}": {_ENCODER.encode(value)}')
    return ", ".join(members)


_ENCODER: Final = JSONEncoder(default=repr)
"""Made once: `json.dumps` makes one for each line that has a `default`."""


class LaidOut(dict[str, object]):
    """Facts of many lines, laid out once. Nobody changes them."""

    __slots__ = ("text",)

    def __init__(self, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self.text: Final = members(facts)


# What no text may bring into a line: credentials, controls (docs/faults.md rows 17, 79)

_USERINFO: Final = re.compile(r"(?<=://)[^/?#@\s]*@")


def _hide_credentials(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Take what `_without_userinfo` does out of the event, however deep it stands."""
    return {key: _each_text(value, _without_userinfo) for key, value in event.items()}


def _without_userinfo(text: str) -> str:
    """Take `user:password@` out of every URL in a text: of a value, or of the JSON of many."""
    return _USERINFO.sub("", text)


_CONTROLS: Final = (
    *(*range(0x20), *range(0x7F, 0xA0)),
    *(0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)),
)
_ESCAPES: Final = {code: chr(code).encode("unicode_escape").decode("ascii") for code in _CONTROLS}
_ESCAPES_IN_TRACEBACKS: Final = {code: text for code, text in _ESCAPES.items() if chr(code) not in "\t\n"}


def _escape_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape what steers a terminal or breaks a line (docs/faults.md row 79). A traceback keeps its lines."""

    def escaped(key: str, value: object) -> Any:
        escapes = _ESCAPES_IN_TRACEBACKS if key == "exception" else _ESCAPES
        return _each_text(value, lambda text: text.translate(escapes))

    return {key: escaped(key, value) for key, value in event.items()}


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _each_text(item, change) for key, item in value.items()}
    return value
