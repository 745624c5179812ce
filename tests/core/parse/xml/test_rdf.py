"""RSS 1.0 and 0.90: rdf:RDF with a channel and the items beside it."""

from __future__ import annotations

from tests.core.parse.makers import URL, slices
from wholefeed.core.model import (
    ATOM_NS,
    DC_NS,
    DCTERMS_NS,
    RDF_NS,
    RSS_090_NS,
    RSS_10_NS,
    TOMBSTONE_NS,
    Family,
    FeedDocument,
    entry_id,
)
from wholefeed.core.parse.documents import parse
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.verbatim.fragments import Fragments

CHANNEL = '<channel rdf:about="http://o.test/"><title>T</title><link>http://o.test/</link>{}</channel>'


def rdf(*inside: str, namespace: str = RSS_10_NS, attributes: str = "", channel: str = "") -> bytes:
    root = f'<rdf:RDF xmlns="{namespace}" xmlns:rdf="{RDF_NS}" xmlns:dc="{DC_NS}"{attributes}>'
    return f"{root}{CHANNEL.format(channel)}{''.join(inside)}</rdf:RDF>".encode()


def read(body: bytes) -> FeedDocument:
    return parse(body, URL)


def test_rss_1_0_is_read_with_the_items_beside_the_channel() -> None:
    """RSS 1.0: the items are those beside the channel, byte for byte, and the channel gives the title."""
    item = '<item rdf:about="urn:a"><title>A</title></item>'
    document = read(rdf('<image rdf:about="urn:i"/>', item, '<item rdf:about="urn:b"/>'))
    assert (document.family, document.version, document.head.title) == (Family.RDF, "1.0", "T")
    assert slices(document) == [item.encode(), b'<item rdf:about="urn:b"/>']


def test_the_items_identity_is_rdf_about_whatever_else_they_have() -> None:
    """R9."""
    document = read(rdf('<item rdf:about=" urn:a "><guid>no</guid><link>http://o.test/a</link></item>'))
    assert document.entries[0].identity == entry_id("urn:a")


def test_without_rdf_about_the_link_identifies_an_item_of_its_own() -> None:
    """R9; RSS 0.90 knows no rdf:about."""
    item = "<item><title>{}</title><link>http://o.test/{}</link></item>"
    document = read(rdf(item.format("1", "a"), item.format("2", "b"), item.format("3", "b")))
    identities = [entry.identity for entry in document.entries]
    assert identities[0] == entry_id("http://o.test/a")
    assert len(set(identities)) == 3
    assert entry_id("http://o.test/b") not in identities


def test_the_update_instant_is_never_dc_date() -> None:
    """R10."""
    dated = "<item><link>l</link><dc:date>2020-01-02T00:00:00Z</dc:date>{}</item>"
    modified = f'<m:modified xmlns:m="{DCTERMS_NS}">2021-01-02</m:modified>'
    published, updated = read(rdf(dated.format(""), dated.format(modified))).entries
    assert (published.updated_at, published.order_at) == (None, parse_rfc3339("2020-01-02T00:00:00Z"))
    assert updated.updated_at == parse_rfc3339("2021-01-02")


def test_the_channel_s_dc_date_stands_in_for_a_pub_date() -> None:
    """R10: RSS 1.0 has no other."""
    head = read(rdf(channel="<dc:date>2020-01-02T00:00:00Z</dc:date>")).head
    assert head.updated_at == parse_rfc3339("2020-01-02T00:00:00Z")


def test_the_head_s_links_are_those_of_the_channel_under_its_own_base() -> None:
    """R0, R11."""
    link = f'<a:link xmlns:a="{ATOM_NS}" rel="prev-archive" href="1"/>'
    body = rdf(f'<item rdf:about="urn:a">{link.replace("1", "9")}</item>', channel=link)
    body = body.replace(b"<channel ", b'<channel xml:base="http://o.test/x/" ')
    (found,) = read(body).head.links
    assert (found.relation, found.target) == ("prev-archive", "http://o.test/x/1")


def test_what_the_channel_declares_does_not_hold_for_the_items_beside_it() -> None:
    """R22: an item beside the channel does not inherit its language or prefixes."""
    body = rdf('<item rdf:about="urn:a"/>').replace(b"<channel ", b'<channel xml:lang="de" xmlns:x="urn:x" ')
    scope = read(body).head.scope
    assert (scope.lang, "x" in scope.prefixes) == ("", False)


def test_items_in_the_channel_are_read_under_what_it_declares() -> None:
    """R22: items that a publisher wrongly nests in the channel are served, with the channel's language."""
    body = rdf(channel='<item rdf:about="urn:a"/>').replace(b"<channel ", b'<channel xml:lang="de" ')
    document = read(body)
    assert slices(document) == [b'<item rdf:about="urn:a"/>']
    assert document.scopes[document.entries[0].scope].lang == "de"


def test_items_beside_the_channel_take_nothing_from_it() -> None:
    """R22: each item means what it meant where it stood."""
    body = rdf('<item rdf:about="urn:b"/>', channel='<item rdf:about="urn:a"/>')
    document = read(body.replace(b"<channel ", b'<channel xml:lang="de" '))
    made = Fragments(document)

    assert [made.entry(n) for n in range(2)] == [
        b'<item xml:lang="de" rdf:about="urn:a"/>',
        b'<item rdf:about="urn:b"/>',
    ]


def test_the_site_is_named_by_the_channel_s_rdf_about() -> None:
    """R24."""
    assert read(rdf()).head.site_id == "http://o.test/"
    assert read(rdf().replace(b'rdf:about="http://o.test/"', b"")).head.site_id == "http://o.test/"


def test_rss_0_90_is_told_by_its_namespace() -> None:
    """Both namespaces of RSS 0.90 are read, so that the oldest feeds still work."""
    for namespace in (RSS_090_NS, "http://channel.netscape.com/rdf/simple/0.9/"):
        document = read(rdf("<item><link>l</link></item>", namespace=namespace))
        assert (document.version, len(document.entries)) == ("0.90", 1)


def test_elements_count_by_namespace_whatever_the_prefix() -> None:
    """R9: an RDF feed with prefixes of its own choice gives the same title, feed id and identities."""
    body = (
        f'<r:RDF xmlns:r="{RDF_NS}" xmlns:s="{RSS_10_NS}"><s:channel r:about="urn:c"><s:title>T</s:title>'
        '</s:channel><s:item r:about="urn:a"><s:title>A</s:title></s:item></r:RDF>'
    )
    document = read(body.encode())
    assert (document.head.title, document.head.site_id) == ("T", "urn:c")
    assert [entry.identity for entry in document.entries] == [entry_id("urn:a")]


def test_an_empty_rdf_is_an_empty_feed() -> None:
    """A document of rdf:RDF alone is a feed without entries, not an error."""
    document = read(f'<rdf:RDF xmlns:rdf="{RDF_NS}"/>'.encode())
    assert (document.family, document.entries, document.head.channel) == (Family.RDF, (), None)


def test_a_tombstone_in_the_channel_is_read() -> None:
    """R19; RFC 6721, 3."""
    at = f'<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref=" urn:a " when="2020-01-02T00:00:00Z"/>'
    (tombstone,) = read(rdf(channel=at)).head.tombstones
    assert (tombstone.identity, tombstone.ref) == (entry_id("urn:a"), "urn:a")
    assert tombstone.when_at == parse_rfc3339("2020-01-02T00:00:00Z")


def test_items_with_a_prefix_count_in_namespaces_that_readers_know_alone() -> None:
    """As in RSS: under a channel that did not make the namespace up nobody would take them for items."""
    made_up = '<p:channel xmlns:p="urn:made-up"/><p:item xmlns:p="urn:made-up"/>'
    known = f'<r:item xmlns:r="{RSS_10_NS}"/><item xmlns="urn:made-up"/>'
    document = parse(f'<rdf:RDF xmlns:rdf="{RDF_NS}">{made_up}{known}</rdf:RDF>'.encode(), URL)
    assert [each[:6] for each in slices(document)] == [b"<r:ite", b"<item "]
