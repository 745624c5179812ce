"""The surroundings of the entries of an answer, and a feed's own names (`core.compose.compose`)."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
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
    Heading,
    compose_prologue,
    heading_of,
    newest_first,
    stored_heading,
)
from wholefeed.core.compose.views import HEALED, MissingRange, compose_warning, told_missing
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
URL = "http://o.test/feed"
Make = Callable[..., bytes]


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
def test_the_composed_document_parses_to_the_same_entries(make: Make) -> None:
    """R22."""
    document = parse(make(an_item("a", 2), an_item("b", 1)), URL)
    again = parse(composed(document), "http://p.test/feed")
    assert [entry.identity for entry in again.entries] == [entry.identity for entry in document.entries]
    assert (again.head.title, again.family) == (document.head.title, document.family)
    assert again.version == document.version
    namespace = default_namespace(document.family, document.version)
    fragments, once_more = fragments_of(document, namespace), fragments_of(again, namespace)
    for n in range(len(document.entries)):
        assert once_more.entry(n, once_more.context) == fragments.entry(n, fragments.context)


@pytest.mark.parametrize("relation", sorted(DROPPED_RELATIONS))
@pytest.mark.parametrize("iri", ["", "http://www.iana.org/assignments/relation/"])
def test_links_that_would_mislead_are_dropped(relation: str, iri: str) -> None:
    """R21: also with the relation as an IRI, in any case."""
    extra = f'<link rel="{iri}{relation.upper() if not iri else relation}" href="http://x.test/"/>'
    assert b"x.test" not in composed(parse(atom(an_item("a"), extra=extra), URL))


@pytest.mark.parametrize("make", [rss, rdf, atom])
@pytest.mark.parametrize(
    "element",
    [
        *(
            f'<i:{name} xmlns:i="{namespace}">http://x.test/</i:{name}>'
            for name, namespace in (
                ("new-feed-url", "http://www.itunes.com/dtds/podcast-1.0.dtd"),
                ("new-feed-url", "http://www.itunes.com/DTDs/Podcast-1.0.dtd"),
                ("new-feed-url", "https://www.itunes.com/dtds/podcast-1.0.dtd"),
                ("New-Feed-URL", "http://www.itunes.com/dtds/podcast-1.0.dtd/"),
                ("newFeedUrl", "http://www.google.com/schemas/play-podcasts/1.0"),
            )
        ),
        '<cloud domain="x.test" port="80" path="/RPC2" registerProcedure="p" protocol="xml-rpc"/>',
        '<Cloud xmlns="http://backend.userland.com/rss2" domain="x.test"/>',
        '<p:podping xmlns:p="https://podcastindex.org/namespace/1.0" usesPodping="true" x="x.test"/>',
        *(
            f'<s:{name} xmlns:s="http://source.scripting.com/">http://x.test/</s:{name}>'
            for name in ("cloud", "self")
        ),
        '<a10:link xmlns:a10="http://www.w3.org/2005/Atom" rel="hub" href="http://x.test/"/>',
        '<link xmlns="" rel="hub" href="http://x.test/"/>',
        '<link xmlns="http://www.w3.org/2005/atom" rel=" Self " href="http://x.test/"/>',
    ],
)
def test_what_leads_apps_away_is_dropped(make: Make, element: str) -> None:
    """R21: links elsewhere or to the publisher's hubs, in every spelling; neighbours stay."""
    author = '<i:author xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd">Ann</i:author>'
    body = composed(parse(make(an_item("a"), extra=element + author), URL))
    assert b"x.test" not in body
    assert b">Ann</" in body


def test_other_links_and_elements_of_the_head_stay() -> None:
    """R21, R22: except signatures, which are untrue of the synthesized document."""
    extra = (
        '<link rel="license" href="/l"/><generator uri="u">G</generator><fh:incremental>true</fh:incremental>'
        '<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X/></ds:Signature>'
    )
    body = composed(parse(atom(an_item("a"), extra=extra), URL))
    assert b'rel="license" href="http://o.test/l"' in body
    assert b">G</generator>" in body
    assert b"incremental" not in body
    assert b"Signature" not in body
    assert feedparser.parse(body).feed.links[0].href == "http://o.test/l"


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
@pytest.mark.parametrize("is_complete", [True, False])
def test_it_says_complete_exactly_when_it_is(make: Make, is_complete: bool) -> None:
    """R21; RFC 5005, 2: the answer names its own URL and the publisher's."""
    document = parse(make(an_item("a"), complete=True, self="/feed"), URL)
    body = composed(document, is_complete=is_complete)
    found = links(body)
    assert (found["self"], found["via"]) == ([ADDRESS.self_url], [ADDRESS.via_url])
    history = parse(body, "http://p.test/").head.history
    assert ("complete" in [element.name for element in history]) is is_complete


def a_warning(document: FeedDocument, *reasons: str, url: str = "http://o.test/1?a&b") -> bytes:
    return compose_warning(
        document.family,
        told_missing([MissingRange(url, reason) for reason in reasons or ("timeout",)]),
        identifier="urn:uuid:1",
        url="http://p.test/status?url=a&b",
        dated_at=1795255200.0,
        version=document.version,
    )


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
def test_the_pseudo_entry_says_what_is_missing_and_does_not_churn(make: Make) -> None:
    """R16: it links to the proxy and promises nothing; news about the feed do not change it. A document name
    that ends like a prefix leaves the root unchanged.
    """
    document = parse(make(an_item("a")), URL)
    warning = a_warning(document)
    body = composed(document, warning=warning)
    (entry, _) = feedparser.parse(body).entries
    said = html.unescape(entry.summary)
    assert entry.id == "urn:uuid:1"
    assert entry.links[0].href == "http://p.test/status?url=a&b"
    assert "http://o.test/1?a&b: the publisher did not respond in time" in said
    assert not {"when", "goes on", "will", "soon"} & set(said.lower().split())
    dated = entry["published_parsed" if document.family is Family.RSS else "updated_parsed"]
    assert dated[:5] == (2026, 11, 21, 10, 0)
    assert a_warning(document) == warning
    named = composed(document, warning=a_warning(document, url="http://o.test/x.atom:media:thr:"))
    assert named.split(b">", 2)[1] == body.split(b">", 2)[1]


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf, json_feed])
@pytest.mark.fault("49")
def test_of_a_document_that_broke_off_the_pseudo_entry_says_that(make: Make) -> None:
    """R16; docs/faults.md row 49: no missing older document is reported, since none is known. Both
    pseudo-entries have one id in a healed feed, so readers replace one by the other.
    """
    document = parse(make(an_item("a")), URL)
    said = a_warning(document, "truncated").decode()
    assert "A document of this feed is cut off" in said
    assert "Older entries" not in said
    assert "several documents" not in said
    both = a_warning(document, "truncated", "timeout").decode()
    assert "Older entries of this feed are missing" in both
    healed = compose_warning(document.family, HEALED, identifier="urn:uuid:1", url=URL, dated_at=0)
    body = composed(document, warning=healed)
    assert b"urn:uuid:1" in body
    assert HEALED.title.encode() in body


@pytest.mark.parametrize("items", [[], [an_item("a")]])
def test_the_pseudo_entry_of_a_json_feed_is_its_first_item(items: list[Item]) -> None:
    """R16: valid JSON with and without further items."""
    document = parse(json_feed(*items), URL)
    found = json.loads(composed(document, warning=a_warning(document)))["items"]
    assert [item["id"] for item in found] == ["urn:uuid:1", *(f"urn:{item.name}" for item in items)]
    assert "http://o.test/1?a&b: the publisher did not respond in time" in found[0]["content_text"]


def test_a_json_feed_names_itself_and_where_it_comes_from() -> None:
    """R21: next_url, hubs and the publisher's feed_url would mislead; other members stay verbatim."""
    head: dict[str, Any] = {"feed_url": "/f", "next_url": "/2", "hubs": [{}], "_own": {"a": 1.50}}
    body = composed(parse(json_feed(an_item("a"), **head), URL))
    found = json.loads(body)
    assert found["feed_url"] == ADDRESS.self_url
    assert found["_wholefeed"] == {"via": ADDRESS.via_url}
    assert found.keys() == {"version", "title", "feed_url", "_own", "_wholefeed", "items"}
    assert json.loads(composed(parse(body, "http://p.test/")))["_wholefeed"] == found["_wholefeed"]


def test_an_rdf_channel_keeps_its_tag_and_what_stands_beside_it() -> None:
    """R22; RSS 1.0, 5.3: the publisher's sequence lacks items, so it is emptied."""
    body = rdf(an_item("a"), extra='<image rdf:resource="urn:i"/>').replace(
        b"</channel>", b'</channel><image rdf:about="urn:i"><title>I</title></image>'
    )
    made = composed(parse(body.replace(b"<channel ", b'<channel xml:lang="de" '), URL))
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
    """R21, R22: the proxy's and the publisher's links keep their meaning for any bound prefixes."""
    own = '<atom:link xmlns:atom="http://www.w3.org/2005/Atom" rel="via" href="original"/>'
    body = rdf(an_item("a"), extra=own).replace(
        f"<{place} ".encode(), f'<{place} xml:base="{base}" '.encode()
    )
    body = body.replace(b"<channel ", b'<channel xmlns:atom="urn:x" xmlns:fh="urn:y" ')
    made = composed(parse(body, URL), is_complete=True)
    before, after = (
        feedparser.parse(each, response_headers={"content-location": URL}).feed.links for each in (body, made)
    )
    via = [link.href for link in before if link.rel == "via"]
    assert [link.href for link in after if link.rel == "via"] == [*via, ADDRESS.via_url]
    assert [link.href for link in after if link.rel == "self"] == [ADDRESS.self_url]
    assert [element.name for element in parse(made, "http://p.test/").head.history] == ["complete"]


@pytest.mark.parametrize(
    "tag", ["<channel/>", '<s:channel xmlns:s="http://purl.org/rss/1.0/"></s:channel>', ""]
)
def test_an_rdf_channel_of_any_spelling_comes_out_well_formed(tag: str) -> None:
    """R21: an empty, prefixed or absent channel also gets a channel with its items list."""
    body = f'<rdf:RDF xmlns="{RSS_10_NS}" xmlns:rdf="{RDF_NS}">{tag}<item rdf:about="urn:a"/></rdf:RDF>'
    root = ElementTree.fromstring(composed(parse(body.encode(), URL), is_complete=True))
    assert [child.tag for child in root] == [f"{{{RSS_10_NS}}}channel", f"{{{RSS_10_NS}}}item"]
    assert root[0].find(f"{{{RSS_10_NS}}}items") is not None


@pytest.mark.parametrize("make", [atom, rss, rdf])
def test_tombstones_of_other_documents_are_passed_on(make: Make) -> None:
    """R19; RFC 6721: once each; those of the subscription document stay verbatim."""
    own = f'<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref="a" when="2020-01-01T00:00:00Z"/>'
    known = [
        Tombstone(entry_id(name), at, name)
        for name, at in (("a", 5.0), ("<b>", 1.5), ("<b>", 0.0), ("", 9.0))
    ]
    head = compose(parse(make(extra=own), URL), known).head
    assert head.text.count(b"deleted-entry") == 2
    assert b'<at:deleted-entry ref="&lt;b&gt;" when="1970-01-01T00:00:01.500000Z"/>' in head.text
    assert own[:17].encode() in head.text


@given(st.lists(st.none() | st.floats(0, 9)))
def test_entries_go_newest_first_and_undated_ones_keep_their_place(order_at: list[float | None]) -> None:
    """R20: no entry is lost or doubled."""
    order = newest_first(order_at)
    assert sorted(order) == list(range(len(order_at)))
    assert all(order[n] == n for n, at in enumerate(order_at) if at is None)
    dated = [(-at, n) for n in order if (at := order_at[n]) is not None]
    assert dated == sorted(dated)


# A head has a bound


@pytest.mark.fault("118")
def test_tombstones_that_are_passed_on_have_no_more_room_than_there_is() -> None:
    """R19, R21, row 118: a thousand with 4,000 characters each; the newest stay."""
    passed_on = [Tombstone(entry_id(f"urn:{n}"), float(n), f"urn:{n}:{'x' * 4000}") for n in range(1_000)]
    head = compose(parse(atom(an_item("a")), URL), passed_on).head
    assert MAX_HEAD_BYTES - 5000 < len(head.text) <= MAX_HEAD_BYTES
    assert head.left_out == 1_000 - head.text.count(b"deleted-entry ")
    assert b'ref="urn:999:' in head.text
    assert b'ref="urn:0:' not in head.text


@pytest.mark.fault("118")
def test_a_channel_without_room_for_its_start_tag_is_left_out() -> None:
    """R21, row 118: its children depend on the tag and go too; the answer is well-formed."""
    long = f'xmlns:x="urn:x" x:long="{"x" * MAX_HEAD_BYTES}"'
    document = parse(rdf(an_item("a")).replace(b"<channel ", f"<channel {long} ".encode()), URL)
    text = composed(document)
    assert len(text) < 2000
    ElementTree.fromstring(text)
    assert [entry.identity for entry in parse(text, "http://p.test/").entries] == [entry_id("urn:a")]
    assert compose(document).head.left_out


@pytest.mark.fault("118")
def test_a_json_feed_without_room_for_any_member_is_an_object() -> None:
    """R21, row 118: `version` itself may be padded to any length."""
    version = " " * MAX_HEAD_BYTES + "https://jsonfeed.org/version/1.1"
    document = parse(json.dumps({"version": version, "items": []}).encode(), URL)
    assert "_wholefeed" in json.loads(composed(document))


@pytest.mark.fault("118")
def test_the_names_of_extensions_take_no_room_from_a_feeds_own() -> None:
    """R21, row 118: a thousand foreign titles, ids and links, or own ones, precede the first that counts."""
    fill = "".join(
        f'<m:title xmlns:m="urn:m">{"x" * 400}</m:title><link rel="x-{n}" href="/{"y" * 400}"/>'
        for n in range(1_000)
    )
    body = atom(an_item("a")).replace(b"<title>", fill.encode() + b'<link href="http://o.test/"/><title>', 1)
    again = parse(composed(parse(body, URL)), "http://p.test/")
    assert (again.head.title, again.head.site_id) == ("A feed", "urn:feed")
    assert "http://o.test/" in [link.target for link in again.head.links]
    assert [child.name for child in again.head.children if child.name == "author"] == ["author"]


# A feed's own names: its subscription document and its published head say the same

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/base/"><title> The
 &amp; title</title><link rel="self" href="f"/><link rel="alternate" href="site/"/></feed>"""
RSS = """<rss version="2.0"><channel><title>The &amp; title</title>
<link>/site/</link><description/></channel></rss>"""


def headings(body: str) -> set[Heading]:
    found = parse(body.encode(), URL)
    head = compose(found).head.text
    return {heading_of(found), stored_heading(found.family, found.version, head, URL)}


@pytest.mark.parametrize(
    ("body", "title", "site"),
    [
        (ATOM, "The & title", "http://o.test/base/site/"),
        (RSS, "The & title", "http://o.test/site/"),
        (RSS.replace("/site/", "http://[x/"), "The & title", ""),
        (json_feed(home_page_url="/").decode(), "A feed", "http://o.test/"),
        (rdf().decode(), "A channel", ""),
    ],
    ids=["atom", "rss", "no url", "json", "rdf"],
)
def test_title_and_site_of_every_format(body: str, title: str, site: str) -> None:
    """The title is one line and the site an absolute URL; RDF's channel has two URLs, so no site."""
    assert headings(body) == {Heading(title, site)}


@pytest.mark.fault("117")
def test_what_is_too_long_for_a_list_is_not_kept() -> None:
    """Row 117: a title is cut; a URL is left out, since a cut one is another URL. JSON can hold a lone
    surrogate (RFC 8259, section 8.2), which no encoding has.
    """
    long = RSS.replace("title<", f"{'t' * 5000}<").replace("/site/", f"/{'s' * 9000}")
    assert heading_of(parse(long.encode(), URL)) == Heading(f"The & {'t' * 994}", "")
    named = json.loads(json_feed()) | {"title": "a\ud800b"}
    heading_of(parse(json.dumps(named).encode(), URL)).title.encode()


def test_a_head_that_cannot_be_read_says_nothing() -> None:
    """Such a head from an earlier version neither stops a list nor costs much."""
    head = compose(parse(RSS.encode(), URL)).head.text
    for stored in (b"<title", head + b" " * MAX_HEAD_BYTES):
        assert stored_heading(Family.RSS, "2.0", stored, URL) == Heading("", "")
