"""Logging: one line per event, without broken lines or secrets."""

from __future__ import annotations

import io
import json
import logging
import math
import os
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import http_exceptions
from aiohttp.web import RequestPayloadError
from hypothesis import given
from hypothesis import strategies as st

from tests.running import Proxy
from wholefeed.config.tables import LogConfig
from wholefeed.logs import (
    LaidOut,
    LineLogger,
    _Relay,
    configure_logging,
    get_logger,
    json_line,
    json_line_of,
    members,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def json_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def stream() -> io.StringIO:
    """Receives JSON lines at level info."""
    stream = io.StringIO()
    configure_logging(LogConfig(), stream)
    return stream


def test_one_json_object_per_line_when_not_on_a_terminal(stream: io.StringIO) -> None:
    """In a container each event is one JSON line with time, level and fields; debug is left out."""
    log = structlog.get_logger()
    log.debug("document.fetched")
    log.info("document.failed", slug="timeout", duration_s=1.5)

    (line,) = json_lines(stream)

    assert list(line) == ["timestamp", "level", "event", "slug", "duration_s"]
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "document.failed", "level": "info", "slug": "timeout", "duration_s": 1.5}


def test_console_on_a_terminal_unless_json_is_wanted() -> None:
    """log.format `auto` is readable text on a terminal, and `json` is JSON even there."""
    for chosen, is_json in (("auto", False), ("console", False), ("json", True)):
        structlog.reset_defaults()
        stream = Terminal()
        configure_logging(LogConfig(format=chosen), stream)
        structlog.get_logger().info("server.started", port=8080)
        assert stream.getvalue().startswith("{") is is_json, chosen
        assert "server.started" in stream.getvalue()


@pytest.mark.parametrize(
    "facts",
    [
        {"url": "https://example.org/" + 300 * "a", "state": "complete", "entries": 302, "documents": 31},
        {"slug": "not-a-feed", "request_id": 32 * "f", "url": "https://example.org/feed"},
        {"url": None, "aborted": True, "status": None},
        {"client": 40 * "f", "path": "/static/{name}", "url": 90 * "u", "slug": 40 * "s", "user_agent": ""},
    ],
)
def test_a_request_is_one_short_line_on_a_terminal(facts: dict[str, Any]) -> None:
    """At most 160 characters, with what a person wants to know."""
    stream = io.StringIO()
    configure_logging(LogConfig(format="console"), stream)
    usual = {"method": "GET", "path": "/feed", "client": "127.0.0.1", "user_agent": 200 * "M", "status": 200}
    told = {**usual, "duration_s": 0.012345, "request_id": "f00d", **facts}
    get_logger().laid_out("request.answered", json.dumps(told)[1:-1])

    (line,) = stream.getvalue().splitlines()
    assert len(line) <= 160
    assert f"request.answered {told['status'] or '-'} GET {told['path']} " in line
    assert ("request_id" in line) is ("slug" in facts and len(facts["slug"]) < 40)
    assert ("complete 302 entries 0.012 s 127.0.0.1 MMMMM" in line) is ("entries" in facts)
    assert ("https://example.org/aaa" in line) is ("entries" in facts)


@pytest.mark.parametrize("chosen", ["json", "console"])
@pytest.mark.parametrize(("level", "count"), [("debug", 1), ("info", 0), ("warning", 0)])
def test_a_line_at_debug_level_is_for_who_wants_it(chosen: str, level: str, count: int) -> None:
    """log.level = "debug" shows it, with its level."""
    stream = io.StringIO()
    configure_logging(LogConfig(format=chosen, level=level), stream)
    get_logger().laid_out("request.answered", '"path": "/healthz"', is_debug=True)
    lines = stream.getvalue().splitlines()
    assert len(lines) == count
    assert all("debug" in line for line in lines)


@pytest.mark.parametrize("chosen", ["json", "console"])
@pytest.mark.parametrize("evil", ["\n", "\r", "\x1b[2J", "\u2028", "\u0085", "\u202e"])
@pytest.mark.fault("79")
def test_no_text_breaks_a_line_or_steers_a_terminal(chosen: str, evil: str) -> None:
    """docs/faults.md row 79; docs/design.md#fetching."""
    stream = io.StringIO()
    configure_logging(LogConfig(format=chosen), stream)

    structlog.get_logger().info(
        "feed.published", title=f"a{evil}b", many=[f"c{evil}d"], deep={"x": f"e{evil}f"}
    )

    assert evil not in stream.getvalue().removesuffix("\n")
    assert len(stream.getvalue().splitlines()) == 1


@pytest.mark.parametrize("chosen", ["json", "console"])
def test_credentials_in_urls_are_not_logged(chosen: str) -> None:
    """Row 17: passwords in URLs are cut from every line, nested ones and those of libraries included."""
    stream = io.StringIO()
    configure_logging(LogConfig(format=chosen), stream)

    structlog.get_logger().info(
        "document.failed", url="http://user:hidden@a.example/", all=["https://hidden@b.example/@x"]
    )
    get_logger().laid_out("request.answered", '"user_agent": "x http://hidden@d.example/"')
    logging.getLogger("aiohttp.client").warning("unclosed: %s", "http://user:hidden@c.example/")

    assert "hidden" not in stream.getvalue()
    for kept in ("http://a.example/", "https://b.example/@x", "http://c.example/", "x http://d.example/"):
        assert kept in stream.getvalue()


def test_an_exception_is_part_of_its_line_without_local_variables(stream: io.StringIO) -> None:
    """Row 80: a traceback in the log is data of its line, and shows no value of a variable."""

    def fail(secret: str) -> None:
        raise ValueError(f"expected more than {len(secret)}")

    try:
        fail("hidden")
    except ValueError:
        structlog.get_logger().exception("request.failed")

    (line,) = json_lines(stream)
    assert line["exception"][0]["exc_value"] == "expected more than 6"
    assert "hidden" not in stream.getvalue()


def test_an_exception_on_the_console_keeps_its_lines_but_no_escapes() -> None:
    """Row 79: a traceback on the console is readable, and its text cannot steer the terminal."""
    stream = io.StringIO()
    configure_logging(LogConfig(format="console"), stream)
    try:
        raise ValueError("\x1b[2J\u2028")
    except ValueError:
        structlog.get_logger().exception("request.failed")
    assert "Traceback" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert "\u2028" not in stream.getvalue()


def test_libraries_speak_through_the_same_lines(stream: io.StringIO) -> None:
    """Errors and warnings of libraries and Python come out as `library.logged`; lower levels do not."""
    logging.getLogger("aiohttp.server").error("Error handling request from %s", "127.0.0.1")
    logging.getLogger("asyncio").warning("slow callback")
    logging.getLogger("asyncio").debug("Using selector")
    logging.getLogger("aiohttp.access").info("GET / 200")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)

    lines = json_lines(stream)

    assert {line["event"] for line in lines} == {"library.logged"}
    assert [line["logger"] for line in lines] == ["aiohttp.server", "asyncio", "py.warnings"]
    assert [line["level"] for line in lines] == ["error", "warning", "warning"]
    assert lines[0]["message"] == "Error handling request from 127.0.0.1"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /feed?token=hidden&url=http://a.example/?hidden=1 HTTP/9\r\n\r\n",
        b"GET /feed?token=hidden\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /feed?token=hidden%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * 9000),
        b"GET /feed?token=hidden HTTP/1.1\r\nhidden hidden\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: hidden\r\n\r\n",
        b"POST /refresh?token=hidden HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nhidden\r\n",
    ],
)
async def test_of_a_request_that_is_no_http_only_the_kind_of_error_is_logged(
    proxy: Proxy, stream: io.StringIO, request_bytes: bytes
) -> None:
    """docs/faults.md row 80: the token is never logged, and a parser's message quotes the request line."""
    await proxy.raw(request_bytes)

    lines = [line for line in json_lines(stream) if line["event"] != "request.answered"]

    assert [line["event"] for line in lines] == ["request.rejected"]
    assert lines[0]["error"] in parser_errors()
    assert (lines[0]["level"], lines[0]["status"]) == ("info", 400)
    assert lines[0].keys() == {"timestamp", "level", "event", "error", "status"}
    assert "hidden" not in stream.getvalue()


def test_a_body_that_breaks_off_is_no_error_of_the_proxy_s_own(stream: io.StringIO) -> None:
    """A client's broken upload is logged as `request.rejected`, without its content."""
    logging.getLogger("aiohttp.server").error("Unhandled", exc_info=RequestPayloadError("hidden"))
    (line,) = json_lines(stream)
    assert (line["event"], line["error"], line["status"]) == ("request.rejected", "RequestPayloadError", None)
    assert "hidden" not in stream.getvalue()


def parser_errors() -> set[str]:
    return {name for name, kind in vars(http_exceptions).items() if isinstance(kind, type)}


class Full(io.StringIO):
    """A stream that can be full for a while."""

    is_full = False

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(text)


@pytest.mark.parametrize("chosen", ["json", "console"])
def test_lines_that_could_not_be_written_are_counted_and_told(chosen: str) -> None:
    """When a full log has room again, `log.lost` says how many lines are missing."""
    stream = Full()
    configure_logging(LogConfig(format=chosen, level="error"), stream)
    log = structlog.get_logger()

    stream.is_full = True
    log.error("document.failed")
    log.error("document.failed")
    stream.is_full = False
    log.error("store.failed")
    log.error("store.full")

    first, *others = stream.getvalue().splitlines()
    for event, line in zip(("log.lost", "store.failed", "store.full"), (first, *others), strict=True):
        assert event in line
    assert ('"lines": 2' if chosen == "json" else "lines=2") in first
    assert "warning" in first


def test_a_full_device_or_a_closed_output_costs_lines_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stream's buffer stays empty too: the interpreter would fail at its end."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        configure_logging(LogConfig(), full)
        structlog.get_logger().info("server.started")
        logging.getLogger("asyncio").error("x" * 100_000)
    structlog.reset_defaults()
    monkeypatch.setattr("sys.stdout", None)
    configure_logging(LogConfig())
    structlog.get_logger().info("server.started")


def test_a_line_that_was_torn_is_not_continued() -> None:
    """A pipe without a reader for a while takes a part of a line."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w", encoding="utf-8") as writer:
        log = LineLogger(writer, lambda lost: f"lost {lost}")
        log.info("x" * 1_000_000)
        os.set_blocking(reading, False)
        torn = reader.read()
        log.info("whole")
        rest = reader.read()
    assert set(torn) == {ord("x")}
    assert rest == b"\nlost 1\nwhole\n"


def test_text_that_the_stream_cannot_encode_is_escaped() -> None:
    """Row 79: letters outside the terminal's encoding are escaped, and do not cost the line."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader:
        with os.fdopen(writing, "w", encoding="ascii") as writer:
            LineLogger(writer, str).info("\ud800 é")
        assert reader.read() == rb"\ud800 \xe9" + b"\n"


def test_level_debug_is_for_our_own_lines() -> None:
    """log.level `debug` shows the proxy's own events, not those of asyncio."""
    stream = io.StringIO()
    configure_logging(LogConfig(level="debug"), stream)
    logging.getLogger("asyncio").debug("Using selector: EpollSelector")
    structlog.get_logger().debug("document.fetched")
    assert [line["event"] for line in json_lines(stream)] == ["document.fetched"]


def test_a_library_s_broken_log_call_is_still_logged(stream: io.StringIO) -> None:
    """A library's log call with wrong arguments is shown unformatted instead of being lost."""
    record = logging.LogRecord("aiohttp.server", logging.ERROR, "", 1, "%d", ("x",), None)
    _Relay().handle(record)
    (line,) = json_lines(stream)
    assert line["message"] == "%d"


def test_configuring_twice_logs_once() -> None:
    """Logging configured a second time writes each line once, at the newer level."""
    configure_logging(LogConfig(), io.StringIO())
    structlog.reset_defaults()
    stream = io.StringIO()
    configure_logging(LogConfig(level="error"), stream)
    logging.getLogger("asyncio").error("once")
    logging.getLogger("asyncio").warning("below the level")
    assert len(json_lines(stream)) == 1


# A line of JSON says what its event does, by whatever way it was made

TEXTS = st.text(st.characters()).filter(lambda text: "@" not in text)
NAMES = st.text("abcdefg_", min_size=1)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.lists(TEXTS), st.binary())


def plainly(event: str, level: str, facts: dict[str, Any]) -> str:
    """The encoder's line without its timestamp."""
    return json.dumps({"level": level, "event": event, **facts}, default=repr)[1:]


def without_timestamp(line: str) -> str:
    began = '{"timestamp": "'
    assert line.startswith(began)
    stamp, _, rest = line[len(began) :].partition('", ')
    assert abs(datetime.fromisoformat(stamp) - datetime.now(UTC)) < timedelta(minutes=1)
    assert stamp.endswith("Z")
    return rest


@given(NAMES, st.dictionaries(NAMES, VALUES))
def test_a_line_is_what_the_encoder_makes_of_its_event(event: str, facts: dict[str, Any]) -> None:
    """Every kind of value, in the order of the fields."""
    assert without_timestamp(json_line("warning", event, facts)) == plainly(event, "warning", facts)


@given(NAMES, st.dictionaries(NAMES, VALUES))
def test_facts_that_are_laid_out_make_the_same_line(event: str, facts: dict[str, Any]) -> None:
    """The caller may have encoded them by hand, or long before."""
    for laid_out in (facts, LaidOut(facts)):
        line = json_line_of("info", event, members(laid_out))
        assert without_timestamp(line) == plainly(event, "info", facts)


@pytest.mark.parametrize("level", ["info", "warning"])
def test_both_ways_through_structlog_make_the_same_line(level: str) -> None:
    """A plain event takes the short way, one with a logger's own context the long one: fields and order are
    equal."""
    stream = io.StringIO()
    configure_logging(LogConfig(level="info"), stream)
    with structlog.contextvars.bound_contextvars(request_id="r", feed=2):
        log = getattr(structlog.get_logger(), level)
        log("feed.stale", feed=1, seconds=math.inf)
        getattr(structlog.get_logger().bind(feed=1), level)("feed.stale", seconds=math.inf)
    first, second = map(without_timestamp, stream.getvalue().splitlines())
    assert (
        first == second == plainly("feed.stale", level, {"feed": 1, "seconds": math.inf, "request_id": "r"})
    )


def test_lines_are_captured_as_those_of_any_logger() -> None:
    """structlog's capture also gets events that take the short way."""
    stream = io.StringIO()
    configure_logging(LogConfig(), stream)
    with structlog.testing.capture_logs() as lines:
        structlog.get_logger().info("server.started", port=1)
    assert lines == [{"event": "server.started", "port": 1, "log_level": "info"}]
    assert stream.getvalue() == ""


# What the package logs when nobody, and when somebody, has configured structlog


def test_loggers_are_silent_until_structlog_is_configured(capfd: pytest.CaptureFixture[str]) -> None:
    """structlog itself would print to standard output; asking for a logger configures nothing."""
    log = get_logger()
    log.info("server.started", port=8080)
    log.bind(feed=1).warning("feed.stale")
    assert capfd.readouterr() == ("", "")
    assert not structlog.is_configured()


def test_loggers_say_what_the_caller_has_structlog_say(capfd: pytest.CaptureFixture[str]) -> None:
    """A logger made and used before the configuration follows it: processors, level and all."""
    log = get_logger()
    log.info("server.started")
    structlog.configure(
        processors=[structlog.processors.KeyValueRenderer(sort_keys=True)],
        wrapper_class=structlog.make_filtering_bound_logger(30),
        logger_factory=structlog.PrintLoggerFactory(),
    )
    log.info("feed.published", feed=1)
    log.warning("feed.stale", feed=1)
    assert capfd.readouterr().out == "event='feed.stale' feed=1\n"


def test_what_is_laid_out_reaches_any_logger_as_fields(capfd: pytest.CaptureFixture[str]) -> None:
    """The caller's JSON need not be known; a logger with arbitrary methods is no logger of JSON."""
    log = get_logger()
    log.laid_out("feed.published", '"feed": 0')
    structlog.configure(
        processors=[structlog.processors.KeyValueRenderer(sort_keys=True)],
        wrapper_class=structlog.BoundLogger,
        logger_factory=structlog.PrintLoggerFactory(),
    )
    log.laid_out("feed.published", '"feed": 1, "state": "complete", "slug": null')
    assert capfd.readouterr().out == "event='feed.published' feed=1 slug=None state='complete'\n"


def test_loggers_are_silent_again_when_the_configuration_is_undone(capfd: pytest.CaptureFixture[str]) -> None:
    """The configuration may have been structlog's default."""
    log = get_logger()
    structlog.configure()
    log.info("server.started")
    assert "server.started" in capfd.readouterr().out
    structlog.reset_defaults()
    log.info("server.started")
    log.laid_out("feed.published", '"feed": 0')
    assert capfd.readouterr() == ("", "")
