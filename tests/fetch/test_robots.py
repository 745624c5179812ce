"""robots.txt: what it forbids, when it is asked for, and what an answer that is none means."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.answers import Answer, Document, Redirect, Reset, Status
from tests.fetchers import a_fetcher
from tests.origin import Origin
from wholefeed.fetch.robots import Robots

DAY = 86400.0
AGENT = "wholefeed/1.0 (+http://a.example/)"


class Time:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def asking(time: Time | None = None) -> AsyncIterator[Robots]:
    async with a_fetcher() as fetcher:
        yield Robots(fetcher, AGENT, clock=time or Time())


def a_file(text: str) -> Document:
    return Document(body=text.encode(), headers=(("Content-Type", "text/plain"),))


@pytest.mark.parametrize(
    ("text", "path", "may_ask"),
    [
        ("User-agent: *\nDisallow: /private/\n", "/private/x", False),
        ("User-agent: *\nDisallow: /private/\n", "/archive/", True),
        ("User-agent: wholefeed\nDisallow: /\n\nUser-agent: *\nAllow: /\n", "/archive/", False),
        ("User-agent: other\nDisallow: /\n", "/archive/", True),
        ("User-agent: *\nDisallow: /\nAllow: /archive/\n", "/archive/2019", True),
        ("User-agent: *\nDisallow: /*?page=\n", "/blog?page=2", False),
        ("<html>no rules</html>", "/archive/", True),
    ],
)
async def test_a_file_forbids_what_it_names(text: str, path: str, *, may_ask: bool) -> None:
    """H1; RFC 9309, 2.2: the group of this program, the longest rule, wildcards."""
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", a_file(text))
        rule = await robots.rule(origin.url(path))
        assert (rule.may_ask, rule.is_lasting, rule.was_asked) == (may_ask, True, True)


@pytest.mark.parametrize(
    ("answer", "may_ask", "is_lasting"),
    [
        (Status(404), True, True),
        (Status(403), True, True),
        (Status(503), False, False),
        (Status(429), False, False),
        (Reset(), False, False),
        (Redirect("/robots.txt"), False, False),
        (a_file(""), True, True),
    ],
)
async def test_what_is_no_file_forbids_all_or_nothing(
    answer: Answer, *, may_ask: bool, is_lasting: bool
) -> None:
    """H1; RFC 9309, 2.3.1: one that is not there forbids nothing, one that cannot be had everything."""
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", answer)
        rule = await robots.rule(origin.url("/archive/"))
        assert (rule.may_ask, rule.is_lasting) == (may_ask, is_lasting)


async def test_it_is_asked_for_once_a_day() -> None:
    """H1: whichever pages of the site are asked about."""
    time = Time()
    async with Origin() as origin, asking(time) as robots:
        origin.answer("/robots.txt", a_file("User-agent: *\nDisallow: /b\n"))
        answers = [await robots.rule(origin.url(path)) for path in ("/a", "/b", "/c")]
        assert [each.may_ask for each in answers] == [True, False, True]
        time.now += DAY - 1
        await robots.rule(origin.url("/a"))
        assert origin.counts() == {"/robots.txt": 1}
        time.now += 2
        assert (await robots.rule(origin.url("/a"))).was_asked
        assert origin.counts() == {"/robots.txt": 2}


@pytest.mark.parametrize(("said", "counts"), [("7", 7.0), ("900", 30.0), ("-3", 0.0)])
async def test_a_crawl_delay_counts_up_to_half_a_minute(said: str, counts: float) -> None:
    """H1."""
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", a_file(f"User-agent: *\nCrawl-delay: {said}\nDisallow:\n"))
        assert (await robots.rule(origin.url("/"))).delay_seconds == counts


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
async def test_the_mark_of_an_encoding_hides_no_rule(encoding: str) -> None:
    """H1; RFC 9309, 2.2: the first line counts behind it."""
    body = "User-agent: *\nDisallow: /\n".encode(encoding)
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", Document(body=body))
        assert not (await robots.rule(origin.url("/"))).may_ask


async def test_a_long_file_is_read_to_its_first_500_kib() -> None:
    """H1, H9; RFC 9309, 2.5: what stands behind that does not count."""
    rules = "User-agent: *\n" + "Disallow: /x*y*z\n" * 60_000 + "Disallow: /archive/\n"
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", a_file(rules))
        assert (await robots.rule(origin.url("/archive/"))).may_ask
        assert not (await robots.rule(origin.url("/x1y2z3"))).may_ask


@pytest.mark.fault("131")
async def test_a_file_that_is_larger_than_any_document_forbids_all() -> None:
    """H1, H9: it is not read, and says nothing that could allow anything."""
    async with Origin() as origin, a_fetcher() as fetcher:
        origin.answer("/robots.txt", a_file("User-agent: *\n" + "Disallow: /x\n" * 100_000))
        rule = await Robots(fetcher, AGENT).rule(origin.url("/archive/"))
        assert (rule.may_ask, rule.is_lasting) == (False, True)
