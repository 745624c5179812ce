"""Statements about publishers, decided without a network from looks at a feed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import BASE_AT, Item, an_item, atom, json_feed, stamp
from tests.repository import DOCS, TESTS, text
from wholefeed.core.jobs import Sender
from wholefeed.core.model import Kind
from wholefeed.core.notes import ChainLoop, LimitReached
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.publisher_check import (
    MOST_FINDINGS,
    RULES,
    CheckLook,
    ExaminedDocument,
    check,
    examine,
    finding,
    foreign_currents,
    in_order,
    line_in,
)
from wholefeed.core.text.dates import format_rfc3339

SITE = "http://site.test"
NOW = BASE_AT + 3600.0 * 24 * 3650
MONTH = 24 * 31


def read(path: str, body: bytes, headers: Mapping[str, str] = {"etag": '"1"'}) -> ExaminedDocument:
    """A stored document, with a validator by default."""
    sender = Sender(url=SITE + path, media_type="application/atom+xml", fetched_at=NOW)
    return examine(body, sender, headers=headers, urls=[SITE + path], max_depth=256)


def a_feed(*archives: list[Item], items: tuple[Item, ...] = (an_item("new", 9000),)) -> CheckLook:
    """A sound feed whose archives, newest first, have these entries."""
    numbers = range(len(archives), 0, -1)
    first = f"/{len(archives)}" if archives else None
    documents = [read("/feed", atom(*items, self="/feed", prev_archive=first))]
    for number, held in zip(numbers, archives, strict=True):
        older = f"/{number - 1}" if number > 1 else None
        links: dict[str, Any] = {"self": f"/{number}", "prev_archive": older, "current": "/feed"}
        documents.append(read(f"/{number}", atom(*held, archive=True, **links)))
    return CheckLook(Kind.ARCHIVED if archives else Kind.PLAIN, documents)


def said(
    first: CheckLook, second: CheckLook | None = None, now: float = NOW, **leads: str | None
) -> list[str]:
    led = {f"{SITE}/{name}": target for name, target in leads.items()}
    return [each.rule.name for each in check(first, second or first, leads=led, now=now)]


def some(number: int, first: int = 0) -> list[Item]:
    return [an_item(f"e{first + each}", first + each) for each in range(number)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((2, 2, 2), []),
        ((1, 2, 2), ["archive-growing"]),
        ((3, 2, 2), []),
        ((1, 2), []),
        ((1, 2, 3), []),
        ((1,), []),
    ],
)
def test_an_archive_that_is_shorter_than_all_others_may_grow(
    sizes: tuple[int, ...], expected: list[str]
) -> None:
    """RFC 5005, section 4: at least two others must have one larger size."""
    assert said(a_feed(*[some(size, 100 * place) for place, size in enumerate(sizes)])) == expected


def test_entries_that_move_to_another_archive_are_told() -> None:
    """R35; RFC 5005, section 4: one came between the looks, and others moved."""
    first = a_feed([an_item("d", 4), an_item("c", 3)], [an_item("b", 2), an_item("a", 1)])
    second = a_feed([an_item("e", 5), an_item("d", 4)], [an_item("c", 3), an_item("b", 2)], [an_item("a", 1)])
    moved = CheckLook(
        second.kind,
        [
            second.feed,
            *(
                replace(new, url=old.url, keys=old.keys)
                for new, old in zip(second.archives, first.archives, strict=False)
            ),
        ],
    )
    assert said(first, moved) == ["archive-changed", "archive-changed", "archives-shift"]


@pytest.mark.parametrize(
    ("months", "now_month", "expected"),
    [
        ((3, 2, 1), 3, ["archive-growing"]),
        ((3, 2, 1), 4, []),
        ((3, 3, 1), 3, []),
        ((3, 2, 2), 3, []),
    ],
)
def test_an_archive_of_a_month_that_goes_on_may_grow(
    months: tuple[int, ...], now_month: int, expected: list[str]
) -> None:
    """RFC 5005, section 4: each archive has a month of its own, this one the newest."""
    now = BASE_AT + 3600.0 * MONTH * now_month + 360_000
    held = [some(place + 1, MONTH * month + 10 * place) for place, month in enumerate(months)]
    assert said(a_feed(*held), now=now) == expected
    same = [some(2, MONTH * month + 10 * place) for place, month in enumerate(months)]
    assert said(a_feed(*same), now=now) == [], "they are cut by size"


def test_an_archive_of_a_year_that_goes_on_may_grow() -> None:
    """RFC 5005, section 4: the same for years, with any months."""
    years = [[*some(2 + year, 8766 * year), *some(1, 8766 * year + 500)] for year in (2, 1, 0)]
    assert said(a_feed(*years), now=BASE_AT + 3600.0 * (2 * 8766 + 600)) == ["archive-growing"]
    assert said(a_feed(*years), now=BASE_AT + 3600.0 * (3 * 8766 + 600)) == []


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (f"{SITE}/feed", []),
        (f"{SITE}:80/feed#top", []),
        (f"{SITE}/other", ["current-elsewhere"]),
        (None, ["current-elsewhere"]),
    ],
)
def test_a_current_leads_back_by_whatever_way(there: str | None, expected: list[str]) -> None:
    """RFC 5005, section 4: only its final target counts."""
    look = a_feed(some(2))
    archive = read("/1", atom(*some(2), archive=True, self="/1", current="/alias"))
    look = CheckLook(look.kind, [look.feed, archive])
    assert foreign_currents(look) == [f"{SITE}/alias"]
    assert said(look, alias=there) == expected


def test_ids_are_compared_by_link_and_title_or_date() -> None:
    """RFC 4287, section 4.2.6: the same link proves nothing alone, but with the title, except in one
    document.
    """
    body = atom(*some(2), archive=True, self="/1", current="/feed")
    renamed = body.replace(b"<id>urn:e0<", b"<id>urn:new<")
    feed = a_feed(some(2)).feed
    own = read("/feed", atom(*some(1), self="/feed", prev_archive="/1"))
    assert said(CheckLook(Kind.ARCHIVED, [own, read("/1", renamed)])) == ["ids-differ"]
    retitled = renamed.replace(b"<title>e0<", b"<title>another<")
    assert said(CheckLook(Kind.ARCHIVED, [own, read("/1", retitled)])) == []
    entry = b"<entry>" + atom(*some(1)).partition(b"<entry>")[2]
    both = renamed.replace(b"</feed>", entry)
    assert said(CheckLook(Kind.ARCHIVED, [own, read("/1", both)])) == []
    assert said(CheckLook(Kind.ARCHIVED, [feed, read("/1", body)])) == []
    beside = renamed.replace(b"</feed>", re.sub(rb"<title>[^<]*", b"<title>another", entry))
    assert said(CheckLook(Kind.ARCHIVED, [own, read("/1", beside)])) == []


def test_thousands_of_differing_ids_take_no_time() -> None:
    """A hostile publisher's 20,000 entries are judged in linear time."""
    body = atom(*some(20_000), archive=True, self="/1", current="/feed")
    renamed = body.replace(b"<id>urn:", b"<id>urn:x")
    feed = a_feed(some(1)).feed
    first, second = (CheckLook(Kind.ARCHIVED, [feed, read("/1", each)]) for each in (body, renamed))
    found = check(first, second, leads={}, now=NOW)
    assert [each.rule.name for each in found] == ["archive-changed"] + MOST_FINDINGS * ["ids-differ"]
    assert found[-1].text.endswith("[and 19980 more]")


@pytest.mark.parametrize(("ahead_seconds", "expected"), [(500, []), (700, ["updated-in-future"])])
def test_clocks_may_differ_a_little(ahead_seconds: float, expected: list[str]) -> None:
    """RFC 4287, section 4.2.15: an instant ten minutes after the fetch is in the future."""
    body = atom(an_item("e", 0), self="/feed", complete=True).replace(
        stamp(0).encode(), format_rfc3339(NOW + ahead_seconds).encode(), 1
    )
    assert said(CheckLook(Kind.COMPLETE, [read("/feed", body)])) == expected


def test_remarks_of_the_walk_are_told() -> None:
    """RFC 5005, section 6: a circle invisible in links is a loop; a limit is no error."""
    look = a_feed(some(2))
    feed = read("/feed", atom(an_item("new", 9000), self="/feed", prev_archive="/lost"))
    circle = CheckLook(look.kind, [feed, *look.archives], (), {ChainLoop.code: "back"})
    assert said(circle) == ["loop"]
    assert said(CheckLook(look.kind, look.documents, (), {LimitReached.code: "stopped"})) == [
        "not-read-to-the-end"
    ]


def test_what_an_archive_of_json_cannot_say_is_not_asked_for() -> None:
    """RFC 5005, appendix B: JSON Feed has no fh:archive."""
    documents = [read(f"/{name}", json_feed(*some(1))) for name in ("feed", "1")]
    assert said(CheckLook(Kind.ARCHIVED, documents)) == ["current-missing"]


def test_each_is_told_once_and_in_the_order_of_the_rules() -> None:
    """Errors come first; duplicates are reported once."""
    found = [finding("no-history", SITE), finding("loop", SITE, 3, relation="next", target=SITE)]
    assert [each.rule.name for each in in_order(found + found)] == ["loop", "no-history"]
    assert [each.is_error for each in RULES.values()] == sorted(
        (r.is_error for r in RULES.values()), reverse=True
    )


def test_what_is_no_feed_is_not_judged() -> None:
    """The caller says so; an error's line is the parser's, if known."""
    with pytest.raises(ParseError):
        read("/feed", b"nothing")
    assert line_in("expected JSON, got an error: Expecting value: line 2 column 10 (char 54)") == 2
    assert line_in("expected a feed, got nothing") is None


def test_credentials_are_not_shown() -> None:
    """A URL's password is hidden in `document` and everywhere else."""
    assert (
        finding("no-history", "http://ann:secret@site.test/feed?a=1").document == "http://site.test/feed?a=1"
    )


def test_the_page_for_publishers_lists_every_rule() -> None:
    """docs/publishing.md has a row for each, in order, with level and source."""
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (error|warning) \| .+ \| ([^|]+) \|$", text(DOCS / "publishing.md"), re.MULTILINE
    )
    expected = [(each.name, "error" if each.is_error else "warning", each.source) for each in RULES.values()]
    assert [
        (name, level, source.replace("readers.md", "docs/readers.md")) for name, level, source in rows
    ] == expected


def test_every_rule_is_shown_by_a_test() -> None:
    """Each rule is in a test whose publisher or look breaks it."""
    files = [Path(__file__), TESTS / "cli" / "test_check.py"]
    named = {
        node.value
        for file in files
        for node in ast.walk(ast.parse(text(file)))
        if isinstance(node, ast.Constant)
    }
    assert set(RULES) - named == set()


def sent(path: str, body: bytes) -> ExaminedDocument:
    sender = Sender(url=f"http://site.test{path}", media_type="application/atom+xml", fetched_at=1.8e9)
    return examine(body, sender, headers={"etag": '"1"'}, urls=[], max_depth=64)


@pytest.mark.parametrize(
    ("attributes", "is_found"),
    [
        ('ref="urn:a>b" when="2009-03-14T10:00:00Z"', False),
        ('ref="urn:a" when="2009&#45;03-14T10:00:00Z"', False),
        ('ref="urn:a when=\'2009-03-14T10:00:00Z\'" when="never"', True),
    ],
)
def test_the_date_of_a_tombstone_is_read_as_xml(attributes: str, *, is_found: bool) -> None:
    """RFC 6721, section 3: the attribute, beside any others."""
    element = f'<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" {attributes}/>'
    found = sent("/feed", atom(an_item("a", 1), extra=element)).findings
    assert any(each.rule.name == "tombstone-undated" for each in found) is is_found


def test_entries_of_other_dates_are_no_copies() -> None:
    """A status page's notices share one title and link."""

    def notice(name: str, year: int) -> str:
        title = "<title>Maintenance</title><link href='http://site.test/status'/>"
        dates = f"<published>{year}-01-01T00:00:00Z</published><updated>{year}-01-01T00:00:00Z</updated>"
        return f"<entry><id>urn:{name}</id>{title}{dates}<content>{name}</content></entry>"

    feed = sent("/feed", atom(extra=notice("a", 2021), prev_archive="/1", self="/feed"))
    archive = sent("/1", atom(extra=notice("b", 2020), archive=True, current="/feed", self="/1"))
    look = CheckLook(Kind.ARCHIVED, [feed, archive])
    assert not [each for each in check(look, look, leads={}, now=1.8e9) if each.rule.name == "ids-differ"]
