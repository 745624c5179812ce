from __future__ import annotations

import hashlib
import json

import pytest

from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.model import EntryId, entry_id
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.identities import MAX_SITE_ID_CHARACTERS, MAX_TITLE_CHARACTERS


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
    """R24: texts of a megabyte would be kept for each of thousands of documents."""
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
    """R9; RFC 5005, appendix B."""
    assert identities(rss(item(" a\n", "x"), item("b", "x"))) == [entry_id("a"), entry_id("b")]


@pytest.mark.parametrize("guid", [None, "", " \n"])
def test_without_a_guid_the_link_identifies_an_item(guid: str | None) -> None:
    """R9: an empty guid is none."""
    assert identities(rss(item(guid, " http://a/ "), item("b"))) == [entry_id("http://a/"), entry_id("b")]


def test_a_link_that_another_item_has_identifies_neither() -> None:
    """R9: where no other item of the document has it; those with a guid count too."""
    first, second, third = identities(rss(item(None, "x", "1"), item(None, "x", "2"), item(None, "y", "3")))

    assert entry_id("x") not in (first, second)
    assert first != second
    assert third == entry_id("y")
    assert identities(rss(item(None, "x", "1"), item("g", "x")))[0] == first


def test_without_guid_and_link_link_title_and_content_identify_an_item() -> None:
    """R9: a hash of them."""
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


def test_no_guid_can_be_mistaken_for_a_hash() -> None:
    """A hash is digested behind U+0000, which no document can hold."""
    (made,) = identities(rss(item(title="t")))

    assert made != entry_id("t")


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

    assert (first, third) == (entry_id("a"), entry_id("1"))
    assert len({first, second, third, fourth, fifth}) == 5
    assert fifth == sixth


def test_instants_and_spans_do_not_depend_on_how_an_entry_is_identified() -> None:
    """A document with an entry without an id is read once more, with more fields."""
    entry = "<item><guid>1</guid><pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate></item>"
    alone, beside = parse(rss(entry), URL), parse(rss(entry, "<item/>"), URL)

    assert alone.entries[0] == beside.entries[0]
    assert alone.head.scope == beside.head.scope


@pytest.mark.parametrize("listed", ["00", "00" * 17, "0g" * 16, "00" * 16 + " 00"])
def test_a_list_of_what_are_no_identities_is_none(listed: str) -> None:
    """What a publisher writes into a document must not be taken for what the proxy noted there."""
    body = rss(
        "<item><guid>a</guid></item>" * len(listed.split()), prolog=f"<?wholefeed-identities {listed}?>"
    )
    assert {entry.identity for entry in parse(body, URL).entries} == {entry_id("a")}
    items = [{"id": "a"}] * len(listed.split())
    version = "https://jsonfeed.org/version/1.1"
    body = json.dumps({"version": version, "_wholefeed": {"identities": listed}, "items": items}).encode()
    assert {entry.identity for entry in parse(body, URL).entries} == {entry_id("a")}
