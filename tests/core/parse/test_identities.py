"""Identities of entries and feeds (R9, R24)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest

from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.model import (
    WELL_KNOWN_PREFIXES,
    EntryId,
    EntryKeys,
    entry_id,
)
from wholefeed.core.notes import IdentityUnusable
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.identities import MAX_SITE_ID_CHARACTERS
from wholefeed.core.parse.limits import MAX_TITLE_CHARACTERS

Make = Callable[..., bytes]


def identities(body: bytes) -> list[EntryId]:
    return [entry.identity for entry in parse(body, URL).entries]


def item(guid: str | None = None, link: str | None = None, title: str = "", content: str = "") -> str:
    inside = (
        (f"<guid>{guid}</guid>" if guid is not None else "")
        + (f"<link>{link}</link>" if link is not None else "")
        + (f"<title>{title}</title>" if title else "")
        + (f"<description>{content}</description>" if content else "")
    )
    return f"<item>{inside}</item>"


@pytest.mark.parametrize("written", ["<id>{}</id><title>{}</title>", "<link>{}</link><title>{}</title>"])
def test_what_names_a_feed_is_kept_in_a_form_that_can_be_compared(written: str) -> None:
    """R24: otherwise thousands of documents would each store texts of a megabyte."""
    make = atom if "<id>" in written else rss
    long = "é" * 100_000
    digest = hashlib.sha256(long.encode()).hexdigest()
    named = {
        "é" * MAX_SITE_ID_CHARACTERS: "é" * MAX_SITE_ID_CHARACTERS,
        long: f"sha256:{digest}",
    }
    for name, kept in named.items():
        head = parse(make(written.format(name, name)), URL).head
        assert (head.site_id, head.title) == (kept, "é" * MAX_TITLE_CHARACTERS)
    assert parse(make(written.format(long[1:], "")), URL).head.site_id not in named.values()


def test_the_guid_identifies_an_item() -> None:
    """R9; RFC 5005, appendix B: then its link; an empty guid does not count."""
    assert identities(rss(item(" a\n", "x"), item("b", "x"))) == [entry_id("a"), entry_id("b")]
    for none in (None, "", " \n"):
        assert identities(rss(item(none, " http://a/ "), item("b"))) == [entry_id("http://a/"), entry_id("b")]
    assert parse(rss(item("a", "x"), item(None, "y")), URL).entries[0].keys is None


def test_a_link_that_another_item_has_identifies_neither() -> None:
    """R9: a link has to be unique, also among items with a guid."""
    first, second, third = identities(rss(item(None, "x", "1"), item(None, "x", "2"), item(None, "y", "3")))

    assert entry_id("http://example.org/blog/x") not in (first, second)
    assert first != second
    assert third == entry_id("http://example.org/blog/y")
    assert identities(rss(item(None, "x", "1"), item("g", "x")))[0] == first


def test_without_guid_and_link_link_title_and_content_identify_an_item() -> None:
    """R9: as a hash."""
    base = identities(rss(item(title="t", content="c")))
    assert identities(rss(item(title=" t ", content="<![CDATA[c]]>"))) == base
    assert identities(rss(item(title="u", content="c"))) != base
    assert identities(rss(item(title="t", content="d"))) != base
    assert identities(rss(item(title="tc"))) != base
    assert identities(rss(item("g"), item(title="t", content="c")))[1:] == base


def test_content_encoded_goes_before_the_description() -> None:
    """R9."""
    encoded = "<content:encoded xmlns:content='http://purl.org/rss/1.0/modules/content/'>{}</content:encoded>"

    def of(text: str, description: str) -> list[EntryId]:
        return identities(rss(f"<item>{encoded.format(text)}<description>{description}</description></item>"))

    assert of("a", "x") == of("a", "y")
    assert of("a", "x") != of("b", "x")


def test_an_atom_entry_without_an_id_follows_the_same_rule() -> None:
    """R9: its alternate link, else the hash."""
    entries = [
        "<entry><link rel='self' href='s'/><link href='a'/><link rel='alternate' href='b'/></entry>",
        "<entry><id/><link rel='alternate' href='c'/></entry>",
        "<entry><id>1</id><link href='c'/></entry>",
        "<entry><title>t</title><summary>s</summary></entry>",
        "<entry><title>t</title><summary>s</summary><content>c</content></entry>",
        "<entry><title>t</title><content>c</content></entry>",
    ]
    first, second, third, fourth, fifth, sixth = identities(atom(*entries))

    assert (first, third) == (entry_id("http://example.org/blog/a"), entry_id("1"))
    assert len({first, second, third, fourth, fifth}) == 5
    assert fifth == sixth


def test_instants_and_spans_do_not_depend_on_how_an_entry_is_identified() -> None:
    """Documents with an entry without an id are read again, with more fields."""
    entry = "<item><guid>1</guid><pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate></item>"
    alone, beside = parse(rss(entry), URL), parse(rss(entry, "<item/>"), URL)

    assert alone.entries[0] == beside.entries[0]
    assert alone.head.scope == beside.head.scope


def keys(body: bytes) -> EntryKeys:
    (entry,) = parse(body, URL).entries
    assert entry.keys is not None
    return entry.keys


def test_links_are_compared_absolute() -> None:
    """R9: one link in any spelling; an absolute link counts as written."""
    whole = keys(rss(item(None, "http://example.org/blog/x")))
    assert keys(rss(item(None, "x"))).link == whole.link
    assert keys(rss(item(None, "/blog/x").replace("<item", "<item xml:base='http://example.org/'"))) == whole
    assert keys(rss(item(None, "HTTP://example.org/blog/x"))).link != whole.link
    linked = "<entry><link xml:base='http://example.org/' href='blog/x'/></entry>"
    assert keys(atom(linked)).link == whole.link


@pytest.mark.parametrize(
    ("make", "written"),
    [
        (rss, "<item><enclosure url='{}'/><enclosure url='{}'/></item>"),
        (atom, "<entry><link rel='enclosure' href='{}'/><link rel='enclosure' href='{}'/></entry>"),
    ],
)
def test_the_first_enclosure_is_a_key_and_all_tell_items_apart(make: Make, written: str) -> None:
    """R9: items with one first file differ if another file differs."""
    one, other = keys(make(written.format("/1", "/2"))), keys(make(written.format("/1", "/3")))
    assert one.enclosure == other.enclosure is not None
    assert one.enclosures != other.enclosures
    assert one.content != other.content


def test_the_channels_own_link_identifies_no_item() -> None:
    """R9: neither RSS's link nor Atom's alternate."""
    own = "http://example.org/"
    alternate = f"<link rel='alternate' href='{own}'/>"
    for body in (
        rss(f"<link>{own}</link>", item(None, own, "t")),
        rss(f"<atom:link href='{own}'/>", item(None, own, "t")),
        atom(alternate, f"<entry>{alternate}<title>t</title></entry>"),
    ):
        (entry,) = parse(body, URL).entries
        assert entry.identity == keys(body).content
        assert entry_id(own) in parse(body, URL).ambiguous


def test_a_date_tells_items_apart() -> None:
    """R9: a weekly item may always have the same title and text."""
    dated = "<item><title>Open thread</title><pubDate>Sat, 0{} Dec 2003 18:30:02 GMT</pubDate></item>"
    assert keys(rss(dated.format(1))).content != keys(rss(dated.format(8))).content


@pytest.mark.parametrize("written", ["author", "dc:creator", "itunes:author", "atom:author"])
def test_an_author_tells_items_apart(written: str) -> None:
    """R9: where nothing else does; others keep their identity."""
    bound = "".join(f" xmlns:{prefix}='{uri}'" for prefix, uri in WELL_KNOWN_PREFIXES.items())

    def content(inside: str) -> EntryId:
        return keys(rss(f"<item{bound}><title>t</title>{inside}</item>")).content

    ann = content(f"<{written}>Ann Lee</{written}>")
    assert ann == content(f"<{written}> Ann\n Lee </{written}>")
    assert ann != content(f"<{written}>Bob</{written}>")
    assert ann != content("") == content(f"<{written}/>")
    assert ann == content(f"<{written}>Ann Lee</{written}><dc:creator>Ann Lee</dc:creator>")


ALL = "N/A"


@pytest.mark.parametrize(
    ("items", "usable"),
    [
        (("one /1 a.mp3", "two /2 b.mp3", "three /3 c.mp3"), False),
        (("one /1 a.mp3", "two /1 b.mp3"), False),  # each links to the show
        (("one /1 a.mp3", "two /2 a.mp3"), False),  # each plays the jingle
        (("one /1 a.mp3", "two /1 a.mp3"), True),  # a version with another title
        (("one /1 a.mp3", "one /2 b.mp3"), True),  # it has moved
        (("one /1 a.mp3", "two /2 b.mp3", "two /3 c.mp3"), True),
        (("one /1 a.mp3", "two  "), True),  # it has lost its link
        (("one  ", "two  "), True),  # nothing else tells them apart
        (("one /1 a.mp3",), True),
    ],
)
def test_an_id_that_stands_on_unlike_entries_identifies_none(items: tuple[str, ...], usable: bool) -> None:
    """R9: entries with different titles and different links or enclosures; versions of one share one of
    these.
    """
    fields = [item.split(" ") for item in items]
    written = rss(
        *(
            f"<item><guid>{ALL}</guid><title>{title}</title>"
            + (f"<link>{link}</link>" if link else "")
            + (f"<enclosure url='{url}'/>" if url else "")
            + "</item>"
            for title, link, url in fields
        )
    )
    document = parse(written, URL)
    found = {entry.identity for entry in document.entries}
    assert found == {entry_id(ALL)} if usable else len(found) == len(items)
    assert (entry_id(ALL) in document.ambiguous) is not usable
    noted = [note.facts["entries"] for note in document.notes if note.kind is IdentityUnusable]
    assert noted == ([] if usable else [len(items)])
    assert all((entry.keys is None) is usable for entry in document.entries)


def test_other_entries_keep_their_ids_beside_one_that_is_not_usable() -> None:
    """R9: the document's other entries stay as before."""
    one, two, other, linked = identities(
        rss(item("/x", "/1", "one"), item("/x", "/2", "two"), item("own", "/3"), item(None, "/x", "linked"))
    )
    assert (one, two) == (entry_id("http://example.org/1"), entry_id("http://example.org/2"))
    assert (other, linked) == (entry_id("own"), entry_id("http://example.org/x"))


def test_an_id_in_json_that_stands_on_unlike_items_identifies_none() -> None:
    """R9: in any format."""
    items = [{"id": 0, "title": f"title {n}", "url": f"http://site.test/{n}"} for n in range(3)]
    body = json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}).encode()
    found = [entry.identity for entry in parse(body, URL, "application/feed+json").entries]
    assert found == [entry_id(f"http://site.test/{n}") for n in range(3)]


@pytest.mark.parametrize(
    ("ids", "usable"),
    [
        (["0", "1", "2"], False),
        (["1", "2", "3", "4"], False),
        (["2", "3", "4"], True),
        (["2", "1", "0"], True),
        (["0", "1"], True),
        (["1", "2", "4"], True),
    ],
)
def test_numbers_of_places_identify_none(ids: list[str], usable: bool) -> None:
    """R9: the next page has the same, and tomorrow others have them."""
    found = identities(rss(*(item(each, f"/{at}", f"title {at}") for at, each in enumerate(ids))))
    links = [entry_id(f"http://example.org/{at}") for at in range(len(ids))]
    assert found == ([entry_id(each) for each in ids] if usable else links)
    alike = identities(rss(*(item(each, "/same", f"title {at}") for at, each in enumerate(ids))))
    assert alike == [entry_id(each) for each in ids]
