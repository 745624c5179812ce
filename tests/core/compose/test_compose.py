from __future__ import annotations

import html
import json
from typing import Any
from xml.etree import ElementTree

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.feeds import Item, an_item, atom, atom_03, json_feed, links, rdf, rss
from wholefeed.core.compose.compose import (
    DROPPED_RELATIONS,
    EPILOGUE,
    MAX_HEAD_BYTES,
    Address,
    compose_prologue,
    newest_first,
)
from wholefeed.core.compose.views import HEALED, Missing, compose_warning, told_missing
from wholefeed.core.jobs import compose
from wholefeed.core.model import (
    RDF_NS,
    RSS_10_NS,
    SEPARATOR,
    TOMBSTONE_NS,
    Family,
    FeedDocument,
    Tombstone,
    default_namespace,
    entry_id,
    segment_end,
    segment_separator,
)
from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.fragments import fragments_of, prefixes_in

ADDRESS = Address("http://p.test/feed?url=x&a", "http://o.test/feed")


def composed(document: FeedDocument, *, is_complete: bool = False, warning: bytes = b"") -> bytes:
    family, version = document.family, document.version
    fragments = fragments_of(document, default_namespace(family, version))
    head = compose(document).head
    sent = [fragments.entry(n, fragments.context) for n in range(len(document.entries))]
    entries = SEPARATOR[family].join(sent) + segment_end(family)
    if warning and sent:
        warning += segment_separator(family)
    prologue = compose_prologue(
        document.family,
        head.text,
        prefixes=head.prefixes | prefixes_in(entries),
        address=ADDRESS,
        is_complete=is_complete,
        version=version,
        warning=warning,
    )
    return prologue + entries + EPILOGUE[document.family]


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf, json_feed])
def test_the_composed_document_parses_to_the_same_entries(make: object) -> None:
    """R22."""
    body = make(an_item("a", 2), an_item("b", 1))  # type: ignore[operator]
    document = parse(body, "http://o.test/feed")
    again = parse(composed(document), "http://p.test/feed")
    assert [entry.identity for entry in again.entries] == [entry.identity for entry in document.entries]
    assert (again.head.title, again.family, again.version) == (
        document.head.title, document.family, document.version
    )  # fmt: skip
    namespace = default_namespace(document.family, document.version)
    fragments, once_more = fragments_of(document, namespace), fragments_of(again, namespace)
    for n in range(len(document.entries)):
        assert once_more.entry(n, once_more.context) == fragments.entry(n, fragments.context)


@pytest.mark.parametrize("relation", sorted(DROPPED_RELATIONS))
@pytest.mark.parametrize("iri", ["", "http://www.iana.org/assignments/relation/"])
def test_links_that_would_mislead_are_dropped(relation: str, iri: str) -> None:
    """R21: also when the relation is written as an IRI, in any case."""
    extra = f'<link rel="{iri}{relation.upper() if not iri else relation}" href="http://x.test/"/>'
    document = parse(atom(an_item("a"), extra=extra), "http://o.test/feed")
    assert b"x.test" not in composed(document)


def test_other_links_and_elements_of_the_head_stay() -> None:
    """R21, R22."""
    extra = (
        '<link rel="license" href="/l"/><generator uri="u">G</generator><fh:incremental>true</fh:incremental>'
    )
    document = parse(atom(an_item("a"), extra=extra), "http://o.test/feed")
    body = composed(document)
    assert b'rel="license" href="http://o.test/l"' in body
    assert b">G</generator>" in body
    assert b"incremental" not in body
    assert feedparser.parse(body).feed.links[0].href == "http://o.test/l"


def test_a_signature_of_the_feed_document_is_dropped() -> None:
    """R21: it is not true of the synthesized document."""
    extra = '<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X/></ds:Signature>'
    assert b"Signature" not in composed(parse(atom(extra=extra), "http://o.test/"))


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
def test_it_names_itself_and_where_it_comes_from(make: object) -> None:
    """R21."""
    document = parse(make(an_item("a"), self="/feed"), "http://o.test/feed")  # type: ignore[operator]
    found = links(composed(document, is_complete=True))
    assert (found["self"], found["via"]) == ([ADDRESS.self_url], [ADDRESS.via_url])


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
@pytest.mark.parametrize("is_complete", [True, False])
def test_it_says_complete_exactly_when_it_is(make: object, is_complete: bool) -> None:
    """R21; RFC 5005, 2."""
    document = parse(make(an_item("a"), complete=True), "http://o.test/feed")  # type: ignore[operator]
    again = parse(composed(document, is_complete=is_complete), "http://p.test/")
    assert ("complete" in [element.name for element in again.head.history]) is is_complete


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
def test_the_pseudo_entry_says_what_is_missing_and_does_not_churn(make: object) -> None:
    """R16."""
    document = parse(make(an_item("a")), "http://o.test/")  # type: ignore[operator]
    warning = a_warning(document)
    (entry, _) = feedparser.parse(composed(document, warning=warning)).entries
    assert entry.id == "urn:uuid:1"
    assert "http://o.test/1?a&b: the publisher did not answer in time" in html.unescape(entry.summary)
    assert entry["published" if document.family is Family.RSS else "updated"]
    assert a_warning(document) == warning


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
def test_the_words_of_the_pseudo_entry_declare_no_namespace(make: object) -> None:
    """R16: a document whose name ends like a prefix does not change the root of the answer."""
    document = parse(make(an_item("a")), "http://o.test/")  # type: ignore[operator]
    plain, named = (a_warning(document, url=f"http://o.test/{name}") for name in ("1", "x.atom:media:thr:"))
    roots = [composed(document, warning=each).split(b">", 2)[1] for each in (plain, named)]
    assert roots[0] == roots[1]


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf, json_feed])
@pytest.mark.fault("49")
def test_of_a_document_that_broke_off_the_pseudo_entry_says_that(make: object) -> None:
    """R16; docs/faults.md row 49: no older document is known to be missing, and none is said to be."""
    document = parse(make(an_item("a")), "http://o.test/")  # type: ignore[operator]
    said = a_warning(document, "truncated").decode()
    assert "This feed broke off" in said
    assert "Older entries" not in said
    assert "several documents" not in said
    both = a_warning(document, "truncated", "timeout").decode()
    assert "Older entries of this feed are missing" in both


def a_warning(document: FeedDocument, *reasons: str, url: str = "http://o.test/1?a&b") -> bytes:
    return compose_warning(
        document.family,
        told_missing([Missing(url, reason) for reason in reasons or ("timeout",)]),
        identifier="urn:uuid:1",
        url="http://p.test/status?url=a&b",
        dated_at=1795255200.0,
        version=document.version,
    )


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
def test_the_pseudo_entry_promises_nothing_and_leads_to_the_proxy(make: object) -> None:
    """R16: what is known of the feed changes; what readers keep does not."""
    document = parse(make(an_item("a")), "http://o.test/")  # type: ignore[operator]
    entry = feedparser.parse(composed(document, warning=a_warning(document))).entries[0]
    assert entry.links[0].href == "http://p.test/status?url=a&b"
    dated = entry["published_parsed" if document.family is Family.RSS else "updated_parsed"]
    assert dated[:5] == (2026, 11, 21, 10, 0)
    assert not {"when", "goes on", "will", "soon"} & set(html.unescape(entry.summary).lower().split())


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf, json_feed])
def test_the_pseudo_entry_of_a_feed_that_has_healed_bears_the_same_id(make: object) -> None:
    """R16: readers replace the one by the other."""
    document = parse(make(an_item("a")), "http://o.test/")  # type: ignore[operator]
    warning = compose_warning(
        document.family, HEALED, identifier="urn:uuid:1", url="http://p.test/", dated_at=0, version=""
    )
    body = composed(document, warning=warning)
    assert b"urn:uuid:1" in body
    assert HEALED.title.encode() in body


@pytest.mark.parametrize("items", [[], [an_item("a")]])
def test_the_pseudo_entry_of_a_json_feed_is_its_first_item(items: list[Item]) -> None:
    """R16: valid JSON, whether items follow or not."""
    document = parse(json_feed(*items), "http://o.test/")
    found = json.loads(composed(document, warning=a_warning(document)))["items"]
    assert [item["id"] for item in found] == ["urn:uuid:1", *(f"urn:{item.name}" for item in items)]
    assert "http://o.test/1?a&b: the publisher did not answer in time" in found[0]["content_text"]


def test_a_json_feed_names_itself_and_where_it_comes_from() -> None:
    """R21: next_url, hubs and the publisher's feed_url would mislead; the other members stay verbatim."""
    head: dict[str, Any] = {
        "feed_url": "/f",
        "next_url": "/2",
        "hubs": [{}],
        "_own": {"a": 1.50},
        "language": "de",
    }
    document = parse(json_feed(an_item("a"), **head), "http://o.test/")
    body = composed(document)
    found = json.loads(body)
    assert found["feed_url"] == ADDRESS.self_url
    assert found["_wholefeed"] == {"via": ADDRESS.via_url}
    assert found.keys() == {
        "version", "title", "feed_url", "_own", "language", "_wholefeed", "items"
    }  # fmt: skip
    assert json.loads(composed(parse(body, "http://p.test/")))["_wholefeed"] == found["_wholefeed"]


def test_an_rdf_channel_keeps_its_tag_and_what_stands_beside_it() -> None:
    """R22; RSS 1.0, 5.3: the publisher's sequence lists some of the items only, so that it is emptied."""
    body = rdf(an_item("a"), extra='<image rdf:resource="urn:i"/>').replace(
        b"</channel>", b'</channel><image rdf:about="urn:i"><title>I</title></image>'
    )
    made = composed(parse(body.replace(b"<channel ", b'<channel xml:lang="de" '), "http://o.test/"))
    root = ElementTree.fromstring(made)
    assert [child.tag.rpartition("}")[2] for child in root] == ["channel", "image", "item"]
    channel = root[0]
    assert channel.get("{http://www.w3.org/XML/1998/namespace}lang") == "de"
    assert channel.get(f"{{{RDF_NS}}}about") == "http://site.test/rdf"
    assert [child.tag for child in channel.iter(f"{{{RDF_NS}}}li")] == []
    assert len(channel.findall(f"{{{RSS_10_NS}}}items/{{{RDF_NS}}}Seq")) == 1
    assert root[1][0].text == "I"


@pytest.mark.parametrize(("place", "base"), [("rdf:RDF", "http://b.test/x/"), ("channel", "x/"), ("", "")])
def test_what_leads_from_an_rdf_channel_leads_there_under_any_base(place: str, base: str) -> None:
    """R21, R22: the proxy's own links, and the publisher's beside them, mean what they meant."""
    own = '<atom:link xmlns:atom="http://www.w3.org/2005/Atom" rel="via" href="original"/>'
    body = rdf(an_item("a"), extra=own).replace(
        f"<{place} ".encode(), f'<{place} xml:base="{base}" '.encode()
    )
    before, after = (
        feedparser.parse(each, response_headers={"content-location": "http://o.test/feed"}).feed.links
        for each in (body, composed(parse(body, "http://o.test/feed")))
    )
    via = [link.href for link in before if link.rel == "via"]
    assert [link.href for link in after if link.rel == "via"] == [*via, ADDRESS.via_url]
    assert [link.href for link in after if link.rel == "self"] == [ADDRESS.self_url]


@pytest.mark.parametrize(
    "tag", ["<channel/>", '<s:channel xmlns:s="http://purl.org/rss/1.0/"></s:channel>', ""]
)
def test_an_rdf_channel_of_any_spelling_comes_out_well_formed(tag: str) -> None:
    """R21: an RSS 1.0 head that is empty, prefixed or absent gets a channel with its items list all the
    same."""
    body = f'<rdf:RDF xmlns="{RSS_10_NS}" xmlns:rdf="{RDF_NS}">{tag}<item rdf:about="urn:a"/></rdf:RDF>'
    root = ElementTree.fromstring(composed(parse(body.encode(), "http://o.test/"), is_complete=True))
    assert [child.tag for child in root] == [f"{{{RSS_10_NS}}}channel", f"{{{RSS_10_NS}}}item"]
    assert root[0].find(f"{{{RSS_10_NS}}}items") is not None


def test_own_links_do_not_depend_on_what_a_channel_binds_their_prefix_to() -> None:
    """R21."""
    body = rdf(an_item("a")).replace(b"<channel ", b'<channel xmlns:atom="urn:x" xmlns:fh="urn:y" ')
    again = parse(composed(parse(body, "http://o.test/"), is_complete=True), "http://p.test/")
    assert [link.relation for link in again.head.links] == ["self", "via"]
    assert [element.name for element in again.head.history] == ["complete"]


@pytest.mark.parametrize("make", [atom, rss, rdf])
def test_tombstones_of_other_documents_are_passed_on(make: object) -> None:
    """R19; RFC 6721: once each, and those of the subscription document as they were written."""
    own = f'<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref="a" when="2020-01-01T00:00:00Z"/>'
    document = parse(make(extra=own), "http://o.test/")  # type: ignore[operator]
    known = [
        Tombstone(entry_id(name), at, name)
        for name, at in (("a", 5.0), ("<b>", 1.5), ("<b>", 0.0), ("", 9.0))
    ]
    head = compose(document, known).head
    assert head.text.count(b"deleted-entry") == 2
    assert b'<at:deleted-entry ref="&lt;b&gt;" when="1970-01-01T00:00:01.500000Z"/>' in head.text
    assert own[:17].encode() in head.text


def test_entries_go_newest_first_and_undated_ones_keep_their_place() -> None:
    """R20."""
    assert newest_first([1.0, None, 3.0, 2.0, None]) == [2, 1, 3, 0, 4]
    assert newest_first([1.0, 1.0]) == [0, 1]


@given(st.lists(st.none() | st.floats(0, 9)))
def test_no_entry_is_lost_or_doubled_by_the_order(order_at: list[float | None]) -> None:
    """R20."""
    order = newest_first(order_at)
    assert sorted(order) == list(range(len(order_at)))
    dated = [at for n in order if (at := order_at[n]) is not None]
    assert dated == sorted(dated, reverse=True)


@pytest.mark.fault("118")
def test_tombstones_that_are_passed_on_have_no_more_room_than_there_is() -> None:
    """R19, R21, row 118: a thousand of 4,000 characters each; the newest stay."""
    document = parse(atom(an_item("a")), "http://o.test/feed")
    passed_on = [Tombstone(entry_id(f"urn:{n}"), float(n), f"urn:{n}:{'x' * 4000}") for n in range(1_000)]
    head = compose(document, passed_on).head
    kept = head.text.count(b"deleted-entry ")
    assert MAX_HEAD_BYTES - 5000 < len(head.text) <= MAX_HEAD_BYTES
    assert head.left_out == 1_000 - kept
    assert b'ref="urn:999:' in head.text
    assert b'ref="urn:0:' not in head.text


@pytest.mark.fault("118")
def test_a_channel_without_room_for_its_start_tag_is_left_out() -> None:
    """R21, row 118: what stands in it leans on the tag and goes with it; the answer is well-formed."""
    long = f'xmlns:x="urn:x" x:long="{"x" * MAX_HEAD_BYTES}"'
    document = parse(rdf(an_item("a")).replace(b"<channel ", f"<channel {long} ".encode()), "http://o.test/f")
    text = composed(document)
    assert len(text) < 2000
    ElementTree.fromstring(text)
    assert [entry.identity for entry in parse(text, "http://p.test/").entries] == [entry_id("urn:a")]
    assert compose(document).head.left_out


@pytest.mark.fault("118")
def test_a_json_feed_without_room_for_any_member_is_an_object() -> None:
    """R21, row 118: `version` itself may be padded to any length."""
    spaces = " " * MAX_HEAD_BYTES
    document = parse(
        json.dumps({"version": f"{spaces}https://jsonfeed.org/version/1.1", "items": []}).encode(),
        "http://o.test/",
    )
    assert "_wholefeed" in json.loads(composed(document))


@pytest.mark.fault("118")
def test_the_names_of_extensions_take_no_room_from_a_feeds_own() -> None:
    """R21, row 118: a thousand titles, ids and links of others', and of the feed's own, before the first of
    each that counts."""
    fill = "".join(
        f'<m:title xmlns:m="urn:m">{"x" * 400}</m:title><link rel="x-{n}" href="/{"y" * 400}"/>'
        for n in range(1_000)
    )
    body = atom(an_item("a")).replace(b"<title>", fill.encode() + b'<link href="http://o.test/"/><title>', 1)
    again = parse(composed(parse(body, "http://o.test/feed")), "http://p.test/")
    assert again.head.title == "A feed"
    assert again.head.site_id == "urn:feed"
    assert "http://o.test/" in [link.target for link in again.head.links]
    assert [child.name for child in again.head.children if child.name == "author"] == ["author"]
