"""wholefeed.web.middlewares: what is told of a request once it has been answered."""

from __future__ import annotations

import io
import json
from urllib.parse import quote

import pytest
from structlog.testing import capture_logs

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.config.tables import LogConfig
from wholefeed.logs import configure_logging

OF_EACH = ["method", "path", "url", "client", "user_agent", "status", "duration_s"]
OF_A_FEED = ["feed", "state", "documents", "entries"]


async def ask_for_everything(proxy: Proxy, url: str) -> None:
    """A feed, one that is not there, what is no feed, and what names a user and a password."""
    for target in (
        f"/feed?url={quote(url, safe='')}",
        "/feed?url=http://u:hidden@a.example/",
        "/healthz",
        "/no",
    ):
        await proxy.ask("GET", target, headers={"User-Agent": 'a "reader"'})


@pytest.mark.parametrize("is_captured", [False, True])
async def test_a_line_says_the_same_in_json_and_to_whoever_else_takes_it(
    proxy: Proxy, origin: Origin, is_captured: bool
) -> None:
    """The fields and their order; passwords are in no line that is written (row 17)."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    stream = io.StringIO()
    configure_logging(LogConfig(), stream)
    if is_captured:
        with capture_logs() as captured:
            await ask_for_everything(proxy, origin.url("/feed"))
        assert stream.getvalue() == ""
        lines = [
            {name: line[name] for name in line if name not in ("event", "log_level")} for line in captured
        ]
    else:
        await ask_for_everything(proxy, origin.url("/feed"))
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert {(line.pop("event"), line.pop("level")) for line in written} == {("request.answered", "info")}
        lines = [{name: line[name] for name in line if name != "timestamp"} for line in written]
        assert "hidden" not in stream.getvalue()
    assert [list(line) for line in lines] == [
        [*OF_EACH, *OF_A_FEED, "request_id"],
        [*OF_EACH, "slug", "request_id"],
        [*OF_EACH, "request_id"],
        [*OF_EACH, "slug", "request_id"],
    ]
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/feed", 200),
        ("/feed", 400),
        ("/healthz", 200),
        ("unmatched", 404),
    ]
    feed, refused, alive, nothing = lines
    assert feed["url"] == origin.url("/feed")
    assert (feed["state"], feed["documents"], feed["entries"]) == ("remembered", 1, 1)
    assert (refused["slug"], nothing["slug"]) == ("userinfo-not-allowed", "not-found")
    assert (alive["url"], alive["user_agent"], alive["client"]) == (None, 'a "reader"', "127.0.0.1")


async def test_no_line_is_written_below_the_level(proxy: Proxy) -> None:
    """log.level `warning` leaves the lines of requests out."""
    stream = io.StringIO()
    configure_logging(LogConfig(level="warning"), stream)
    assert (await proxy.ask("GET", "/healthz")).status == 200
    assert stream.getvalue() == ""
