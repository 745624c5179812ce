"""robots.txt: its rules, the time of its requests, and answers without a file."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from tests.answers import Answer, Document, Redirect, Reset, Status
from tests.fetchers import a_fetcher
from tests.origin import Origin
from wholefeed.fetch.robots import Robots, find_sitemaps, own_rules

DAY = 86400.0
AGENT = "wholefeed/1.0 (+http://a.example/)"


class Time:
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
    """H1; RFC 9309, 2.3.1: a missing one forbids nothing, an unavailable one everything."""
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", answer)
        rule = await robots.rule(origin.url("/archive/"))
        assert (rule.may_ask, rule.is_lasting) == (may_ask, is_lasting)


async def test_it_is_asked_for_once_a_day() -> None:
    """H1: for all pages of the site."""
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
    """H1, H9; RFC 9309, 2.5: rules behind that do not count."""
    others = "User-agent: other\n" + "Disallow: /other\n" * 60_000
    rules = f"User-agent: *\nDisallow: /x*y*z\n{others}User-agent: *\nDisallow: /archive/\n"
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", a_file(rules))
        assert (await robots.rule(origin.url("/archive/"))).may_ask
        assert not (await robots.rule(origin.url("/x1y2z3"))).may_ask


@pytest.mark.fault("131")
async def test_a_file_that_is_larger_than_any_document_forbids_all() -> None:
    """H1, H9: it is not read, and so allows nothing."""
    async with Origin() as origin, a_fetcher() as fetcher:
        origin.answer("/robots.txt", a_file("User-agent: *\n" + "Disallow: /x\n" * 100_000))
        rule = await Robots(fetcher, AGENT).rule(origin.url("/archive/"))
        assert (rule.may_ask, rule.is_lasting) == (False, True)


LINES = st.sampled_from(
    [
        *(
            "User-agent: *",
            "User-agent: wholefeed",
            "user-agent:WHOLE*",
            "User-agent: other",
            "useragent whole",
        ),
        *(
            "User agent: Wholefeed/1.0",
            "User-agent:",
            "User-agent: feed",
            "User-agent: w",
            "User-agent: *feed*",
        ),
        *(
            "Disallow: /",
            "Disallow: /a",
            "Disallow: /a*b$",
            "Allow: /a/b",
            "Allow /a",
            "dissallow: /c",
            "Disallow:",
        ),
        *("Crawl-delay: 3", "crawl delay 7", "Crawl-delay: much", "Sitemap: http://a.test/s", "Host: a.test"),
        *("", "# nothing", "Clean-param: ref /a", "nonsense", "http://a.test/", "Disallow: /d # but why"),
        *("Request-rate: 1/5", "Disallow: /caf%C3%A9", "Allow: /index.html", "  Disallow : /e  "),
    ]
)


@given(lines=st.lists(LINES, max_size=25), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_is_kept_says_the_same_as_the_whole(lines: list[str], end: str) -> None:
    """H1; RFC 9309, 2.2.1: for this agent, by the library that reads both."""
    text = end.join(lines)
    kept = own_rules(text, "wholefeed")
    assert kept is not None
    whole, own = Protego.parse(text), Protego.parse(kept)
    assert own.crawl_delay("wholefeed") == whole.crawl_delay("wholefeed")
    for path in ("/", "/a", "/a/b", "/axb", "/c", "/d", "/e", "/caf%C3%A9", "/index.html", "/ref"):
        url = f"http://a.test{path}"
        assert own.can_fetch(url, "wholefeed") == whole.can_fetch(url, "wholefeed"), path


@pytest.mark.fault("145")
@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("User-agent: a\n" * 20_000 + "Disallow: /\n" * 20_000, True),
        ("User-agent: *\n" * 20_000 + "Disallow: /\n" * 20, False),
        ("User-agent: whole\nUser-agent: wholefeed\n" * 9000 + "Disallow: /\n" * 9000, False),
        ("User-agent: *\n" + "Disallow: /\n" * 40_000, False),
        ("User-agent: *\nDisallow: /" + "a*" * 100_000, False),
        ("User-agent: *\nDisallow: /a\n" + "User-agent: b\nDisallow: /\n" * 15_000, True),
        ("Disallow: /\n" * 40_000, True),
        ("\0" * 500_000, True),
        ("<html>" + "<p>text</p>\n" * 30_000, True),
    ],
    ids=[
        "many names",
        "all many times",
        "names of ours",
        "rules",
        "one rule",
        "groups",
        "none",
        "NUL",
        "HTML",
    ],
)
def test_of_a_file_little_is_kept(text: str, is_kept: bool) -> None:
    """H1; RFC 9309, 2.5: the rules of a site are bounded; a file with more forbids all."""
    kept = own_rules(text, "wholefeed")
    assert (kept is not None) is is_kept
    assert len(kept or "") < 1 << 16


@pytest.mark.fault("145")
@pytest.mark.parametrize(
    "rule",
    [
        *("Disallow: /{}\n", "Disallow: /{}$\n", "Disallow: /*{}*$\n", "Allow: /{}/index.html\n"),
        *("Allow: /*{}$/index.html\n", "Disallow: /{}*bc*bc*bc*bc*bc*bc*bc*bc$\n", "Crawl-delay: {}\n"),
        *("Disallow: /{}" + "\u00e9" * 20 + "$\n", "Disallow: /{}" + "\U0001f600*" * 10 + "$\n"),
        "User-agent: whole*\nDisallow: /{}\n",
    ],
)
def test_no_file_takes_more_memory_than_a_site_may(rule: str) -> None:
    """H1, H9: the longest accepted file of each kind of rules."""
    rules = [rule.replace("{}", str(number)) for number in range(2500)]
    texts = (f"User-agent: *\n{''.join(rules[:count])}" for count in range(2500, 0, -50))
    text = next(text for text in texts if own_rules(text, "wholefeed") is not None)
    tracemalloc.start()
    try:
        read = Protego.parse(own_rules(text, "wholefeed") or "")
        read.can_fetch("http://a.test/" + "b" * 2000, "wholefeed")
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
    assert peak < 4_000_000


@pytest.mark.fault("145")
async def test_a_file_that_says_too_much_forbids_all() -> None:
    """H1; RFC 9309, 2.3.1.4: like an unavailable one, but by its publisher's word."""
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", a_file("User-agent: *\n" + "Allow: /\n" * 5000))
        rule = await robots.rule(origin.url("/archive/"))
        assert (rule.may_ask, rule.is_lasting) == (False, True)


@pytest.mark.fault("145")
@pytest.mark.parametrize("end", ["\n", "\r"])
async def test_half_a_line_does_not_count(end: str) -> None:
    """H1; RFC 9309, 2.5: a truncated `Allow` would allow more than intended."""
    rule = "Allow: /archive/public"
    filler = f"User-agent: *{end}Disallow: /archive{end}" + f"# {'x' * 97}{end}" * 5200
    kept = filler[: 500 * 1024 - len("Allow: /archive/")].rpartition(end)[0]
    padding = "#" * (500 * 1024 - len("Allow: /archive/") - len(kept) - 2)
    async with Origin() as origin, asking() as robots:
        origin.answer("/robots.txt", a_file(f"{kept}{end}{padding}{end}{rule}{end}"))
        assert not (await robots.rule(origin.url("/archive/other"))).may_ask


async def test_a_file_names_sitemaps_for_every_program() -> None:
    """H10; sitemaps.org: wherever the lines stand, absolute or not; of a file that was asked for alone."""
    async with Origin() as origin, asking() as robots:
        text = "sitemap: /a.xml\nUser-agent: other\nDisallow: /\nSitemap: https://b.example/b.xml # new\n"
        origin.answer(
            "/robots.txt", a_file(text + "Sitemap:\nSitemap: /a.xml\nSitemap: ftp://b.example/c.xml\n")
        )
        assert robots.sitemaps(origin.url("/")) == ()
        await robots.rule(origin.url("/"))
        assert robots.sitemaps(origin.url("/x")) == (origin.url("/a.xml"), "https://b.example/b.xml")


@pytest.mark.fault("146")
def test_sitemaps_of_a_hostile_file_are_bounded() -> None:
    """H9: fifty, each of a thousand characters."""
    many = "".join(f"Sitemap: /{number}.xml\n" for number in range(10_000)).encode()
    assert len(find_sitemaps(many, "http://a.example")) == 50
    assert find_sitemaps(b"Sitemap: /" + b"x" * 100_000, "http://a.example") == ()
    assert find_sitemaps(b"Sitemap:" * 60_000 + b" " * 100_000, "http://a.example") == ()
