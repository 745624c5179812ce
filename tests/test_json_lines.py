"""A line of JSON says what its event does, by whatever way it was made."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.config.tables import LogConfig
from wholefeed.logs import LaidOut, configure_logging, json_line, json_line_of, members

TEXTS = st.text(st.characters()).filter(lambda text: "@" not in text)
NAMES = st.text("abcdefg_", min_size=1)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.lists(TEXTS), st.binary())


def plainly(event: str, level: str, facts: dict[str, Any]) -> str:
    """The line as the encoder writes it, from behind its timestamp."""
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
    """Their caller may have laid them out by hand, or long before."""
    for laid_out in (facts, LaidOut(facts)):
        line = json_line_of("info", event, members(laid_out))
        assert without_timestamp(line) == plainly(event, "info", facts)


@pytest.mark.parametrize("is_laid_out", [False, True])
def test_no_password_is_in_the_line_of_a_request(is_laid_out: bool) -> None:
    """Row 17: it is taken out of whatever field it stands in."""
    facts: dict[str, Any] = {
        "method": "GET",
        "path": "/@feed",
        "url": "http://user:hidden@a.example/",
        "client": "127.0.0.1",
        "user_agent": "x http://hidden@b.example/",
        "status": 200,
        "duration_s": 0.1,
    }
    text = (
        json_line_of("info", "request.answered", members(facts))
        if is_laid_out
        else json_line("info", "request.answered", facts)
    )
    line = json.loads(text)
    assert line["path"] == "/@feed"
    assert (line["url"], line["user_agent"]) == ("http://a.example/", "x http://b.example/")


@pytest.mark.parametrize("level", ["info", "warning"])
def test_both_ways_through_structlog_make_the_same_line(level: str) -> None:
    """A plain event takes the short way, one with a logger's own context the long one: fields and order."""
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
    """What captures events of structlog gets those that take the short way, too."""
    stream = io.StringIO()
    configure_logging(LogConfig(), stream)
    with structlog.testing.capture_logs() as lines:
        structlog.get_logger().info("server.started", port=1)
    assert lines == [{"event": "server.started", "port": 1, "log_level": "info"}]
    assert stream.getvalue() == ""
