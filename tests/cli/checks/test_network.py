"""wholefeed.cli.doctor: names, and one document as the proxy would fetch it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom
from tests.fetchers import Names, SilentNames
from tests.origin import Origin
from tests.running import a_config
from wholefeed.cli import doctor
from wholefeed.cli.doctor import Finding, Verdict, check_fetch, check_names
from wholefeed.config.tables import Config


def only(found: list[Finding]) -> Finding:
    (one,) = found
    return one


async def test_a_name_that_can_be_looked_up_is_good() -> None:
    """With its addresses."""
    found = await check_names("a.example", Config(), Names({"a.example": ("192.0.2.1",)}))
    assert found.verdict is Verdict.GOOD
    assert "192.0.2.1" in found.text


async def test_a_name_that_cannot_is_wrong() -> None:
    """With what the name server said."""
    found = await check_names("a.example", Config(), Names())
    assert found.verdict is Verdict.WRONG
    assert "no such name" in found.text
    assert found.advice


async def test_a_name_server_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine may be offline: it is told, in time."""
    monkeypatch.setattr(doctor, "LOOKUP_SECONDS", 0.05)
    found = await check_names("a.example", Config(), SilentNames())
    assert found.verdict is Verdict.WRONG
    assert "offline" in found.text


async def test_a_slow_name_server_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new publisher waits for it."""
    monkeypatch.setattr(doctor, "_SLOW_NAMES_SECONDS", -1.0)
    found = await check_names("a.example", Config(), Names({"a.example": ("192.0.2.1",)}))
    assert found.verdict is Verdict.WARNING


async def test_behind_a_proxy_no_name_is_looked_up(tmp_path: Path) -> None:
    """That is the proxy's job."""
    names = Names()
    config = a_config(tmp_path, fetch={"proxy": "http://127.0.0.1:3128"})
    assert (await check_names("a.example", config, names)).verdict is Verdict.SKIPPED
    assert names.asked == []


async def test_a_feed_that_can_be_fetched_is_good(origin: Origin, tmp_path: Path) -> None:
    """Status, size, type, redirects, entries; and the clock agrees with its Date where it tells one."""
    origin.publish("/feed", atom(an_item("a"), an_item("b")))
    origin.redirect("/old", "/feed")
    document, clock = await check_fetch(origin.url("/old"), a_config(tmp_path))
    assert document.verdict is Verdict.GOOD
    assert "200" in document.text
    assert "1 redirect to" in document.text
    assert document.text.endswith("2 entries")
    assert clock.verdict in (Verdict.GOOD, Verdict.SKIPPED)


async def test_a_publisher_s_date_is_held_against_the_clock(origin: Origin, tmp_path: Path) -> None:
    """RFC 9110, 6.6.1."""
    origin.publish("/feed", atom(an_item("a")), headers=[("Date", "Tue, 14 Nov 2023 00:00:00 GMT")])
    _, clock = await check_fetch(origin.url("/feed"), a_config(tmp_path))
    assert clock.verdict is Verdict.WRONG


async def test_a_page_is_a_warning(origin: Origin, tmp_path: Path) -> None:
    """It was fetched, so the way out is good."""
    origin.publish("/page", b"<html>no feed</html>", content_type="text/html")
    document, *_ = await check_fetch(origin.url("/page"), a_config(tmp_path))
    assert document.verdict is Verdict.WARNING
    assert "not-a-feed" in document.text


async def test_what_cannot_be_fetched_is_wrong_and_says_why(origin: Origin, tmp_path: Path) -> None:
    """The guard, a closed port, a status: each with its slug and something to do."""
    origin.answer("/gone", Status(404))
    config = a_config(tmp_path)
    guarded = a_config(tmp_path, fetch={"allow_networks": ()})
    for url, with_config, slug, advice in (
        (origin.url("/gone"), config, "publisher-status", "explain"),
        (origin.url("/gone"), guarded, "destination-forbidden", "fetch.allow_networks"),
        ("http://127.0.0.1:9/feed", config, "destination-forbidden", "fetch.ports"),
        ("http://127.0.0.1:1025/feed", config, "connection-failed", "firewall"),
    ):
        found = only(await check_fetch(url, with_config))
        assert found.verdict is Verdict.WRONG
        assert slug in found.text
        assert advice in found.advice


async def test_a_publisher_that_is_silent_is_not_waited_for(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole takes seconds, whatever fetch.document_timeout_seconds says."""
    monkeypatch.setattr(doctor, "FETCH_SECONDS", 0.2)
    with origin.held("/feed"):
        found = only(await check_fetch(origin.url("/feed"), a_config(tmp_path)))
    assert found.verdict is Verdict.WRONG
    assert "timeout" in found.text


async def test_no_secret_of_a_url_is_shown(origin: Origin, tmp_path: Path) -> None:
    """Feeds of podcasts bear tokens in their query: what is printed is pasted into reports."""
    origin.publish("/feed", atom(an_item("a")))
    origin.redirect("/moved", "/gone?token=secret")
    for path in ("/feed?token=secret", "/moved?token=secret", "/gone?token=secret"):
        found, *_ = await check_fetch(origin.url(path), a_config(tmp_path))
        assert "secret" not in found.text
        assert origin.url(path.partition("?")[0]) in found.text
