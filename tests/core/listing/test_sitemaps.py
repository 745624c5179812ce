"""wholefeed.core.listing.sitemaps: pages that a file names, within limits, and files for posts."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.listing.site_models import HEAD, index, url, urlset
from tests.core.listing.web import HOST, day_of, path_of
from tests.cpu_time import cpu_limit
from wholefeed.core.listing.page_links import PathShape, link_key
from wholefeed.core.listing.site_xml import MOST_FILE_BYTES
from wholefeed.core.listing.sitemaps import MOST_URLS, Sitemap, rank_sitemaps, read_sitemap

SHAPE = PathShape.of(link_key(HOST + path_of(number)) for number in range(5))


def read(
    body: str | bytes, content_type: str = "application/xml", wanted: frozenset[str] = frozenset()
) -> Sitemap:
    sitemap = read_any(body, content_type, wanted)
    assert sitemap is not None
    return sitemap


def read_any(
    body: str | bytes, content_type: str = "application/xml", wanted: frozenset[str] = frozenset()
) -> Sitemap | None:
    text = body.encode() if isinstance(body, str) else body
    return read_sitemap(text, f"{HOST}/sitemap.xml", content_type, SHAPE, wanted)


def paths(sitemap: Sitemap) -> list[str]:
    return [each.url.removeprefix(HOST) for each in sitemap.entries]


def test_pages_of_the_shape_of_entries_are_reported_with_the_day_of_their_change() -> None:
    """H10: others are counted alone, if nobody wants them."""
    body = urlset([url(path_of(1), day_of(1)), url("/about/"), url(path_of(2)), url("/archive/")])
    sitemap = read(body, wanted=frozenset({link_key(f"{HOST}/archive/")}))
    assert paths(sitemap) == [path_of(1), path_of(2), "/archive/"]
    assert [each.at for each in sitemap.entries] == [day_of(1).timestamp(), None, None]
    assert (sitemap.total, sitemap.root, sitemap.is_cut) == (4, "", False)


def test_elements_of_extensions_are_no_pages() -> None:
    """H10: pictures, videos and other languages have their own URLs."""
    extension = (
        "<image:image xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>"
        f"<image:loc>{HOST}{path_of(8)}</image:loc></image:image>"
        f"<x:loc xmlns:x='urn:x'>{HOST}{path_of(9)}</x:loc>"
        f"<xhtml:link xmlns:xhtml='http://www.w3.org/1999/xhtml' rel='alternate' href='{HOST}{path_of(7)}'/>"
    )
    assert paths(read(urlset([url(path_of(1), None, extension)]))) == [path_of(1)]


def test_a_page_with_others_below_it_is_marked() -> None:
    """H10: it is a folder, like `/posts/tags/`."""
    sitemap = read(urlset([url("/posts/tags/"), url("/posts/tags/home/"), url(path_of(1))]))
    assert {each.url.removeprefix(HOST): each.has_below for each in sitemap.entries} == {
        "/posts/tags/": True,
        path_of(1): False,
    }
    assert sitemap.root == "posts"


@pytest.mark.parametrize("namespace", ["", ' xmlns="http://www.google.com/schemas/sitemap/0.84"'])
def test_the_namespace_may_be_missing_or_another(namespace: str) -> None:
    """H10: older software writes Google's."""
    body = f"{HEAD}<urlset{namespace}>{url(path_of(1))}</urlset>"
    assert paths(read(body)) == [path_of(1)]


def test_an_index_names_sitemaps() -> None:
    """H10: they are not read as pages."""
    sitemap = read(index("/a.xml", "/b.xml", "/a.xml"))
    assert sitemap.sitemaps == (f"{HOST}/a.xml", f"{HOST}/b.xml")
    assert sitemap.entries == ()


def test_a_file_may_be_packed_or_plain_text() -> None:
    """H10: gzip as a file of its own; a URL a line."""
    body = urlset([url(path_of(1))])
    assert paths(read(gzip.compress(body.encode()), "application/x-gzip")) == [path_of(1)]
    assert paths(read(f"{HOST}{path_of(1)}\n\n{HOST}{path_of(2)}\n", "text/plain")) == [
        path_of(1),
        path_of(2),
    ]
    assert paths(read(b"\xef\xbb\xbf" + body.encode())) == [path_of(1)]


def test_all_members_of_a_gzip_file_are_read() -> None:
    """H10; RFC 1952, 2.2: tools join files, and some pack each block for itself; zeros may follow."""
    body = urlset([url(path_of(number)) for number in range(300)]).encode()
    parts = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    packed = b"".join(map(gzip.compress, parts))
    for behind in (b"", b"\0" * 512):
        sitemap = read(packed + behind)
        assert (sitemap.total, sitemap.is_cut) == (300, False)
    for broken in (packed[:-5], packed + b"x", packed + gzip.compress(b" " * (MOST_FILE_BYTES + 1))):
        assert read(broken).is_cut
    with cpu_limit(0.5):
        assert read(packed + gzip.compress(b"") * 100_000).is_cut


@pytest.mark.parametrize(
    "body", ["", "<rss/>", "<html><p>Not found", "Hello", "{}", b"\x1f\x8bnothing", b"\xff\xfe\0\0"]
)
def test_other_documents_are_no_sitemaps(body: str | bytes) -> None:
    """H10: an error page that answers 200, too."""
    assert read_any(body) is None


def test_a_broken_sitemap_is_read_as_far_as_it_goes() -> None:
    """H10: and is known to be cut."""
    sitemap = read(urlset([url(path_of(1)), url(path_of(2))])[:-30])
    assert (paths(sitemap), sitemap.is_cut) == ([path_of(1)], True)


@pytest.mark.fault("146")
def test_limits_hold() -> None:
    """H9, H10: 50,000 URLs; 20 MB unpacked, however small the file."""
    many = read(urlset(url(path_of(number)) for number in range(MOST_URLS + 10)))
    assert (len(many.entries), many.total, many.is_cut) == (MOST_URLS, MOST_URLS, True)
    bomb = gzip.compress((urlset([url(path_of(1))])[:-10] + " " * (MOST_FILE_BYTES + 5_000_000)).encode())
    assert len(bomb) < MOST_FILE_BYTES / 100
    sitemap = read(bomb)
    assert (paths(sitemap), sitemap.is_cut) == ([path_of(1)], True)
    doctype = '<!DOCTYPE urlset [<!ENTITY a "aaaa">]>'
    assert read_any(HEAD + doctype + urlset([url(path_of(1))]).removeprefix(HEAD)) is None


HOSTILE = {
    "deep": "<urlset>" + "<a>" * 300_000,
    "wide": "<urlset>" + "<url/>" * 300_000,
    "fields": "<urlset><url>" + "<loc>x</loc>" * 200_000,
    "attributes": "<urlset " + " ".join(f"a{n}='x'" for n in range(100_000)) + "/>",
    "long": "<urlset><url><loc>" + "x" * 2_000_000 + "</loc></url></urlset>",
    "lines": f"{HOST}/\n" * 200_000,
    "hosts": "<urlset>" + "".join(f"<url><loc>http://é{n}.test</loc></url>" for n in range(30_000)),
    "empty lines": "\n" * 2_000_000,
    "no lines": "http://" + "x" * 2_000_000,
}


@pytest.mark.fault("146")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_little(name: str) -> None:
    """H9: a second of computing for each megabyte, on any machine that tests run on."""
    body = HOSTILE[name]
    with cpu_limit(0.25 * len(body) / 1e6):
        sitemap = read_any(body)
    assert sitemap is None or len(sitemap.entries) <= MOST_URLS


def test_lines_are_split_as_far_as_they_are_read() -> None:
    """H9: a packed file of 20 KB would become millions of lines in memory."""
    body = gzip.compress(f"{HOST}/\n".encode() + b"a\n" * 1_000_000)
    tracemalloc.start()
    try:
        read_any(body)
        assert tracemalloc.get_traced_memory()[1] < 5 * 2_000_000
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=300) | st.text(alphabet="<>/urlset loc&;:x'\"=?!", max_size=200).map(str.encode))
def test_any_bytes_are_read(body: bytes) -> None:
    """H9: never an error."""
    read_any(body)
    read_any(gzip.compress(body))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("post-sitemap.xml", True),
        ("post-sitemap2.xml", True),
        ("sitemap-posts.xml", True),
        ("wp-sitemap-posts-post-1.xml", True),
        ("sitemap-pt-post-2019-01.xml", True),
        ("sitemaps/posts/2019.xml", True),
        ("sitemap-2019.xml", False),
        ("sitemap.xml?page=2", False),
        ("wp-sitemap-posts-docs-1.xml", False),
        ("wp-sitemap-posts-page-1.xml", None),
        ("page-sitemap.xml", None),
        ("post_tag-sitemap.xml", None),
        ("sitemap-authors.xml", None),
        ("wp-sitemap-users-1.xml", None),
        ("image-sitemap-1.xml.gz", None),
    ],
)
def test_names_say_what_a_sitemap_is_for(name: str, found: bool | None) -> None:
    """H10: posts come first, others without a name behind, and those of tags or pages are left out."""
    assert rank_sitemaps([f"{HOST}/{name}"]) == ([] if found is None else [(f"{HOST}/{name}", found)])


def test_those_for_posts_come_first() -> None:
    """H10: in their own order."""
    names = [f"{HOST}/{name}.xml" for name in ("a", "post-1", "page-1", "b", "post-2")]
    ranked = [url_.rpartition("/")[2] for url_, _ in rank_sitemaps(names)]
    assert ranked == ["post-1.xml", "post-2.xml", "a.xml", "b.xml"]
