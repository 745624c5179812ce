"""What the package logs when nobody, and when somebody, has configured structlog."""

from __future__ import annotations

import pytest
import structlog

from wholefeed.logs import get_logger


def test_loggers_are_silent_until_structlog_is_configured(capfd: pytest.CaptureFixture[str]) -> None:
    """structlog itself would print to standard output; and nothing is configured by asking for a logger."""
    log = get_logger()
    log.info("server.started", port=8080)
    log.bind(feed=1).warning("feed.stale")
    assert capfd.readouterr() == ("", "")
    assert not structlog.is_configured()


def test_loggers_say_what_the_caller_has_structlog_say(capfd: pytest.CaptureFixture[str]) -> None:
    """A logger that was made, and used, before the configuration follows it: processors, level and all."""
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
    """Nobody has to know that the caller wrote JSON; a logger that has any method is no logger of JSON."""
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
    """It may have been what structlog comes with."""
    log = get_logger()
    structlog.configure()
    log.info("server.started")
    assert "server.started" in capfd.readouterr().out
    structlog.reset_defaults()
    log.info("server.started")
    log.laid_out("feed.published", '"feed": 0')
    assert capfd.readouterr() == ("", "")
