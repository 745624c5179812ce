"""Logging: one line per event, JSON or console.

Only the command line calls `configure_logging`. For programs with the library, events go to their own
structlog. Unless they configure structlog, the loggers are silent, because its default prints to standard
output.

Event names are fixed `noun.past_participle`s; variable parts are fields, with units in their names. A
`failed` event without an explanation is an error of the proxy, with traceback. Fields contain neither
credentials nor the query of a publisher's URL.

Events
    server.started      host, port, version; socket if configured
    server.stopped
    supervisor.unreachable  error: systemd gets no messages
    token.created       path; never the token itself (docs/faults.md row 81)
    token.tightened     path: until now, other users could read the file
    migration.applied   name of the last, migrations: their number
    store.tightened     path: until now, other users could use the file
    store.exposed       path, reason: other users can use the file
    store.failed        the database refused a write
    store.unpurged      reason: old rows stay for now
    store.unfinished    writes: given up at the end of a slow database
    store.full          the volume is full or read-only
    store.damaged       error: malformed file; no writes until a restart
    store.recovered
    notices.lost        reason: no notices of replicas until the database responds
    notices.resumed
    request.answered    method, path, url, client (address, IPv6 network or "unix"), user_agent, status,
                        duration_s, request_id; feed, state, documents, entries for feeds; opml: outcome
                        counts of a subscription list; slug of an error; aborted if broken off; debug level
                        for /healthz and the page's own files
    answer.cut          feed, slug: a read failed during the answer, so the connection was broken off
    request.failed
    request.rejected    error, status: invalid HTTP; its text may hold a token and is not logged
    document.fetched    outcome, url, host, hops, status, wire_bytes, body_bytes, duration_s
    document.failed     the same, slug: no usable document; info level for guesses and probes
    target.refused      the same: the guard refused the URL; all three have feed if it is known
    document.unreadable feed, document, slug: a newer parser fails on a stored body
    walk.started        feed
    walk.ended          feed, ending, documents, fetched, duration_s
    refresh.failed      feed
    feed.published      feed, state, documents, entries, notes
    feed.stale          feed, slug: the publisher failed; the stored feed is served
    feed.unkept         feed, slug: the store refused a refresh's result
    feed.unpublished    feed, slug: the store refused a publication during a walk
    feed.evicted        feed, used_bytes: the store exceeded store.max_bytes
    entry.forgotten     feed
    feed.continued      feed, entries, new
    feed.forgotten      feed
    import.taken        feed, outcome (taken, or known), entries, new
    import.refused      feed, slug
    import.removed      feed, documents
    host.rested         host, port, slug, seconds: a pause after failures in a row
    host.recovered      host, port
    hosts.unshared      reason: replicas cannot share their knowledge of hosts
    hosts.shared        seconds since the last failure
    feed.polled         feed, duration_s: a refresh without a request; slug of a failure
    feed.adopted        feed: the refresh of an ended replica goes on here
    replay.begun        feed: a first replay
    replay.failed       feed, reason: not numbered; the next request tries again
    replica.unheard     replica, reason: the others get no sign of life
    replica.isolated    replica, stopped: seemingly dead to the others, it ended so many tasks, begins anew
    replica.forgotten   replica: the database lost its leases; every replica begins again
    background.failed   name
    polling.paused      reason: the store failed
    archive.failed      slug, seconds: a pause for the web archive
    archive.paused      slug: the store failed
    lists.looked        feed, pages, entries, missing, requests, duration_s: a search of the publisher's pages
    lists.unkept        feed, slug: the store failed; next attempt in an hour
    lists.failed        feed
    lists.paused        slug: the store failed
    texts.fetched       feed, pages, texts, requests, duration_s: pages of entries, for their texts
    texts.unkept        feed, slug: the store failed; next attempt in an hour
    texts.failed        feed
    texts.paused        slug: the store failed
    intake.begun        intake, feeds: a subscription list to ask for
    intake.forgotten    intake
    intake.unkept       intake, slug: the store failed; next attempt in a minute
    intake.failed       intake
    intakes.paused      slug: the store failed
    memento.unusable    slug: unreadable, or not surely of the feed
    connections.reaped  connections: idle ones closed
    connections.crowded closed: idle and half-open ones that made room within a second; unaccepted: times
                        without room in the system
    library.logged      logger, message: from standard logging
    worker.unstarted    reason: the server itself handles large documents
    log.lost            lines: lines not written before this one
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
    return _PackageLogger()


class _PackageLogger:
    """A proxy for a structlog logger, renewed with the configuration."""

    def __init__(self) -> None:
        # structlog's own proxy makes a logger for each line, more than half of the line's cost.
        self._made_for: dict[str, Any] = {}
        self._made: Any = _SILENT

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current(), name)

    def laid_out(self, event: str, facts: str, *, is_debug: bool = False) -> None:
        """Log an info or debug event with facts as members of a JSON object.

        JSON loggers have `log_json`, which takes them unparsed.
        """
        level = "debug" if is_debug else "info"
        logger = self._current()
        log_json = getattr(type(logger), "log_json", None)  # of the class: some loggers have any method
        if log_json is None or not log_json(logger, level, event, facts):
            getattr(logger, level)(event, **json.loads(f"{{{facts}}}"))

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

# Logged with each line of a request; structlog's `bind_contextvars` takes ten times as long.
REQUEST_ID: Final[ContextVar[str]] = ContextVar(f"{STRUCTLOG_KEY_PREFIX}request_id")

# How lines are made, and where they go


def configure_logging(config: LogConfig, stream: TextIO | None = None) -> None:
    """Set up structlog and standard logging for the process, once, before the first event.

    Lines that `stream` (default: standard output) refuses are lost; `log.lost` counts them.
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
        _shorten_request,
        structlog.dev.ConsoleRenderer(
            colors=is_terminal and "NO_COLOR" not in os.environ,
            exception_formatter=structlog.dev.plain_traceback,
        ),
    ]


_LINE_CHARACTERS: Final = 160
"""Longest line of a request in a terminal."""
_STAMP_CHARACTERS: Final = len("12:34:56 [warning  ] ")
_AGENT_CHARACTERS: Final = 30
_LEAST_URL_CHARACTERS: Final = 20


def _shorten_request(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if event.get("event") != _REQUEST_ANSWERED:
        return event
    found: Callable[[str], Any] = event.get
    state = found("slug") or found("state")
    count = found("entries")
    entries = "" if count is None else f"{count} {'entry' if count == 1 else 'entries'}"
    is_aborted = "aborted" if found("aborted") else ""
    trace = f"request_id={found('request_id')}" if found("slug") else ""
    agent = _cut(found("user_agent") or "", _AGENT_CHARACTERS)
    duration = f"{found('duration_s') or 0:.3f} s"
    before = _join(_REQUEST_ANSWERED, found("status") or "-", found("method"), found("path"))
    after = _join(state, entries, is_aborted, duration, found("client"), agent, trace)
    room = _LINE_CHARACTERS - _STAMP_CHARACTERS - len(before) - len(after) - 2
    line = _join(before, _cut(found("url") or "", max(room, _LEAST_URL_CHARACTERS)), after)
    line = _cut(line, _LINE_CHARACTERS - _STAMP_CHARACTERS)
    return {"timestamp": found("timestamp"), "level": found("level"), "event": line}


_REQUEST_ANSWERED: Final = "request.answered"


def _join(*parts: object) -> str:
    return " ".join(str(part) for part in parts if part)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _render_json(logger: WrappedLogger, method: str, event: EventDict) -> str:
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
    ordinary: Any = structlog.make_filtering_bound_logger(level)
    has_debug = level <= logging.DEBUG

    # Frequent events go a short way: each of structlog's steps is a call and a copy of the facts.
    class JsonLogger(ordinary):  # type: ignore[misc]
        def info(self, event: str, *args: object, **facts: object) -> None:
            is_plain = not (args or self._context or "exc_info" in facts)
            if is_plain and self._processors[-1] is _render_json:
                self._logger.msg(
                    json_line("info", event, structlog.contextvars.merge_contextvars(None, "info", facts))
                )
            else:
                super().info(event, *args, **facts)

        def log_json(self, level: str, event: str, facts: str) -> bool:
            is_ours = self._processors[-1] is _render_json
            if is_ours and (level == "info" or has_debug):
                self._logger.msg(json_line_of(level, event, facts))
            return is_ours

    class QuietLogger(ordinary):  # type: ignore[misc]
        def log_json(self, level: str, event: str, facts: str) -> bool:
            return True

    return JsonLogger if level <= logging.INFO else QuietLogger


class LineLogger:
    """A writer of lines that never raises; without a `stream`, all lines are lost."""

    def __init__(self, stream: TextIO | None, tell_lost: Callable[[int], str]) -> None:
        self._stream = stream
        self._tell_lost = tell_lost
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._lock = threading.Lock()
        self._lost = 0
        self._is_torn = False
        try:
            # A buffer would keep refused lines, and with them their error, until the interpreter's end.
            self._descriptor = -1 if stream is None else stream.fileno()
        except (OSError, ValueError):
            self._descriptor = -1
        self._write = self._write_bytes if self._descriptor >= 0 else self._write_text

    def msg(self, line: str) -> None:
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
        """Write a line, or remember its torn end, lest the next line continue it."""
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
    # aiohttp, asyncio and warnings go through structlog; `request.answered` replaces access logs.
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Relay)]:
        root.removeHandler(handler)
    root.addHandler(_Relay())
    root.setLevel(max(level, logging.INFO))
    logging.captureWarnings(True)
    logging.getLogger("aiohttp.access").setLevel(logging.CRITICAL)
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # `notices.lost` and the counts tell it


class _Relay(logging.Handler):
    """Passes library records to structlog.

    For an invalid request it passes the error's class only: message and traceback quote the token and the
    publisher's query. It drops lost connections, which could flood the log (docs/faults.md row 95a).
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
    # Whoever logs such an error has imported these; loggers are also for those who have no use for aiohttp.
    from aiohttp.http_exceptions import HttpProcessingError  # noqa: PLC0415
    from aiohttp.web import RequestPayloadError  # noqa: PLC0415

    return isinstance(error, HttpProcessingError | RequestPayloadError)


# An event as a line of JSON


def json_line(level: str, event: str, facts: EventDict) -> str:
    """Return the JSON line of an event that happens now."""
    return json_line_of(level, event, members(facts))


def json_line_of(level: str, event: str, text: str) -> str:
    """Return the JSON line of an event with facts laid out by `members`; hide passwords in URLs."""
    if "@" in text:
        text = _without_userinfo(text)
    seconds, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    instant = f"{_second(seconds)}.{microseconds:06}Z"
    comma = ", " if text else ""
    return f'{{"timestamp": "{instant}", "level": "{level}", "event": {quoted(event)}{comma}{text}}}'


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    # Cached, since many lines share a second.
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def members(facts: Mapping[str, Any]) -> str:
    """Lay facts out as JSON members; names must need no escapes."""
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


# `json.dumps` with `default` makes one for each line.
_ENCODER: Final = JSONEncoder(default=repr)


class LaidOut(dict[str, object]):
    """Immutable facts of many lines, laid out once."""

    __slots__ = ("text",)

    def __init__(self, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self.text: Final = members(facts)


# What no text may bring into a line: credentials, controls (docs/faults.md rows 17, 79)

_USERINFO: Final = re.compile(r"(?<=://)[^/?#@\s]*@")


def _hide_credentials(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: _each_text(value, _without_userinfo) for key, value in event.items()}


def _without_userinfo(text: str) -> str:
    return _USERINFO.sub("", text)


_CONTROLS: Final = (
    *(*range(0x20), *range(0x7F, 0xA0)),
    *(0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)),
)
_ESCAPES: Final = {code: chr(code).encode("unicode_escape").decode("ascii") for code in _CONTROLS}
_ESCAPES_IN_TRACEBACKS: Final = {code: text for code, text in _ESCAPES.items() if chr(code) not in "\t\n"}


def _escape_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters (docs/faults.md row 79), except line breaks in tracebacks."""

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
