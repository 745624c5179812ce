from __future__ import annotations

import pytest

from tests.cpu_time import cpu_limit
from wholefeed.core.parse.discovery import Alternate, discover, in_order, is_html, refresh_target

PAGE = """<!DOCTYPE html><html><head>
<link rel="stylesheet" href="/s.css">
<link rel="alternate" type="application/rss+xml" href="/rss">
<link rel="ALTERNATE home" type="application/atom+xml; charset=utf-8" title="A" href="a.atom">
<link rel="alternate" type="application/atom+xml" href="b.atom">
<link rel="alternate" type="application/atom+xml" href="">
<link rel="alternate" type="application/atom+xml" href="ftp://o.test/c">
<link rel="alternate" hreflang="de" href="/de">
</head><body>text"""


@pytest.mark.parametrize("label", ["utf-8", "utf-16", "zip", "base64", ""])
def test_every_announced_feed_is_found_in_order(label: str) -> None:
    """A reader who enters a site's page gets the feeds of its link elements, the first Atom feed first, for
    any charset.
    """
    page = PAGE.encode("utf-16" if label == "utf-16" else "utf-8")
    found = discover(page, "http://o.test/blog/", f"text/html; charset={label}")
    assert found == [
        Alternate("application/rss+xml", "http://o.test/rss"),
        Alternate("application/atom+xml", "http://o.test/blog/a.atom", "A"),
        Alternate("application/atom+xml", "http://o.test/blog/b.atom"),
    ]
    kinds = ("application/json", "text/xml", "application/feed+json", "application/rdf+xml")
    json, xml, feed_json, rdf = (Alternate(kind, "http://o.test/") for kind in kinds)
    assert in_order(found) == ([found[1], found[2], found[0]], [])
    assert in_order([json, xml, feed_json, rdf]) == ([rdf, feed_json, xml, json], [])
    assert in_order([]) == ([], [])


def test_a_reference_with_thousands_of_digits_stands_for_no_character() -> None:
    """Python reads no number of that length."""
    page = PAGE.replace('title="A"', f'title="A&#{"1" * 5000};"')
    found = discover(page.encode(), "http://o.test/blog/", "text/html")
    assert [each.title for each in found] == ["", "A\ufffd", ""]


@pytest.mark.fault("155")
@pytest.mark.parametrize(
    ("comments", "posts"),
    [
        (("Diary \u00bb Comments Feed", "/comments/feed/"), ("Diary \u00bb Feed", "/feed/")),
        (("", "/?feed=comments-rss2"), ("", "/?feed=rss2")),
        (("Entry - Comments", "/feeds/17/comments/default"), ("Diary - Atom", "/feeds/posts/default")),
        (("Tagebuch \u00bb Kommentar-Feed", "/a"), ("Tagebuch \u00bb Feed", "/b")),
        (("Journal \u00bb Flux des commentaires", "/a"), ("Journal \u00bb Flux", "/b")),
        (("Diario \u00bb Feed de los comentarios", "/a"), ("Diario \u00bb Feed", "/b")),
        (("\u043a\u043e\u043c\u043c\u0435\u043d\u0442\u0430\u0440\u0438\u0438", "/a"), ("RSS", "/b")),
        (("\u65e5\u8a18 \u30b3\u30e1\u30f3\u30c8", "/a"), ("\u65e5\u8a18", "/b")),
        (("", "/comments/feed/comments/"), ("", "/comments/feed/")),
        (("Comments on Chess \u00bb Comments Feed", "/a"), ("Comments on Chess \u00bb Feed", "/b")),
    ],
    ids=[
        "WordPress",
        "a query",
        "Blogger",
        "de",
        "fr",
        "es",
        "ru",
        "ja",
        "in a folder's name",
        "in the site's name",
    ],
)
def test_comments_come_after_posts(comments: tuple[str, str], posts: tuple[str, str]) -> None:
    """Row 155: for any order and format, by title or URL, in several languages."""
    page = "".join(
        f"<link rel=alternate type='{kind}' title='{title}' href='{href}'>"
        for kind, (title, href) in (("application/atom+xml", comments), ("application/rss+xml", posts))
    )
    found = in_order(discover(page.encode(), "http://comments.test/", "text/html"))
    assert [[each.url for each in part] for part in found] == [
        [f"http://comments.test{posts[1]}"],
        [f"http://comments.test{comments[1]}"],
    ]


@pytest.mark.fault("155")
@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("rel='alternate' type='text/xml' href='/f'", "https://o.test/f"),
        ("rel='alternate' type='application/xml' href='/f'", "https://o.test/f"),
        ("rel='alternate' type='application/json' href='/feed.json'", "https://o.test/feed.json"),
        ("rel='alternate' type='application/json' title='JSON Feed' href='/j'", "https://o.test/j"),
        ("rel='alternate' type='application/json' title='JSON' href='/wp-json/wp/v2/pages/1'", None),
        ("rel='alternate' type='application/json' href='/wp-json/wp/v2/posts/feed-a-cat'", None),
        ("rel='alternate' type='text/xml+oembed' href='/oembed'", None),
        ("REL='Feed Alternate' TYPE='APPLICATION/RSS+XML' HREF='/f'", "https://o.test/f"),
        ("rel='feed' type='application/atom+xml' href='/f'", "https://o.test/f"),
        ("rel='stylesheet' type='text/xml' href='/f'", None),
        ("rel='alternate' type='application/rss+xml' href='feed:https://p.test/f'", "https://p.test/f"),
        ("rel='alternate' type='application/rss+xml' href='FEED:http://p.test/f'", "http://p.test/f"),
        ("rel='alternate' type='application/rss+xml' href='feed://p.test/f'", "https://p.test/f"),
        ("rel='alternate' type='application/rss+xml' href='feed://http://p.test/f'", "http://p.test/f"),
    ],
)
def test_feeds_are_announced_in_many_ways(link: str, url: str | None) -> None:
    """Row 155: any XML type, JSON called a feed, `feed:` before the URL, several relations. Links for
    programs are left out.
    """
    page = f"<html><body><link {link}>".encode()
    assert [each.url for each in discover(page, "https://o.test/", "text/html")] == ([url] if url else [])


def test_a_feed_that_is_announced_twice_is_one() -> None:
    """The first of two links counts, so nobody has to choose."""
    page = (
        b"<link rel=alternate type=text/xml title=A href=/f><link rel=alternate type=text/xml href=/x/../f>"
    )
    assert discover(page, "http://o.test/", "text/html") == [Alternate("text/xml", "http://o.test/f", "A")]


def test_the_title_of_a_feed_is_one_line_of_bounded_length() -> None:
    """A person chooses by it: white space is folded, references are resolved, excess is cut."""
    page = f'<link rel=alternate type=application/rss+xml href=f title=" A &amp;\n B {"c" * 900}">'
    (found,) = discover(page.encode(), "http://o.test/", "text/html")
    assert found.title.startswith("A & B ccc")
    assert len(found.title) == 200


@pytest.mark.parametrize("is_late", [True, False])
def test_the_base_element_is_minded(is_late: bool) -> None:
    """WHATWG HTML, 4.2.3: the page's first <base> applies, even after the link."""
    link, bases = (
        b"<link rel=alternate type=application/rss+xml href=f>",
        b'<base href="/x/"><base href="/y/">',
    )
    page = link + bases if is_late else bases + link
    assert discover(page, "http://o.test/blog/", "text/html")[0].url == "http://o.test/x/f"


@pytest.mark.parametrize("broken", [b"<![ ]>", b"<![foo[", b"<!DOCTYPE [", b"<!ELEMENT x"])
def test_broken_markup_hides_nothing_that_stood_before_it(broken: bytes) -> None:
    """A feed link stays if the HTML parser gives up after it."""
    page = b"<html><link rel=alternate type=application/rss+xml href=/f>" + broken + b"</html>"
    assert [found.url for found in discover(page, "http://o.test/", "text/html")] == ["http://o.test/f"]


def test_what_looks_like_a_page_is_one() -> None:
    """Row 38: by type or first tag, and never an XML feed."""
    assert is_html(b"x", "text/html; charset=utf-8")
    assert is_html(b"<!doctype html><HTML>", "application/octet-stream")
    assert not is_html(b"<feed>", "application/xml")


@pytest.mark.fault("154")
@pytest.mark.parametrize(
    "tag",
    [
        '<meta http-equiv="refresh" content="0;url=/new.xml">',
        "<META CONTENT='0; URL=/new.xml' HTTP-EQUIV=Refresh>",
        "<meta http-equiv=refresh content=0;/new.xml />",
        """<meta http-equiv="refresh" content="0; url='/new.xml' and more">""",
        '<meta http-equiv=" refresh " content=" 3 , url = /new.xml ">',
        '<meta http-equiv="refresh" content="0.5 http://o.test/new.xml">',
        '<meta http-equiv="refresh" content="10; url=&#47;new.xml">',
        '<noscript><meta http-equiv="refresh" content="0; url=new.xml"></noscript>',
        '<meta http-equiv="refresh" content="0; url=feed://o.test/new.xml">',
        '<meta http-equiv="refresh" content="0; url=new.xml"><meta http-equiv="refresh" content="0; url=b">',
        '<meta http-equiv="refresh" content="0; url=../new.xml"><base href="/deep/">',
        "<meta http-equiv=refresh content=0;/new.xml><link rel=alternate type=text/xml href=/new.xml>",
    ],
)
@pytest.mark.parametrize("is_in_head", [True, False])
def test_a_page_that_refreshes_at_once_leads_on(tag: str, is_in_head: bool) -> None:
    """Row 154; WHATWG HTML, 4.2.5.3: in every spelling of browsers, anywhere."""
    page = f"<!doctype html><title>Moved</title>{'' if is_in_head else '<body><p>Moved</p>'}{tag}"
    assert refresh_target(page.encode(), "http://o.test/old.xml", "text/html") == "http://o.test/new.xml"


@pytest.mark.fault("154")
@pytest.mark.parametrize(
    "page",
    [
        '<meta http-equiv="refresh" content="11; url=/new.xml">',
        f'<meta http-equiv="refresh" content="{"9" * 6000}; url=/new.xml">',
        '<meta http-equiv="refresh" content="0">',
        '<meta http-equiv="refresh" content="0; url=">',
        '<meta http-equiv="refresh" content="url=/new.xml">',
        '<meta http-equiv="refresh" content="0; url=#top">',
        '<meta http-equiv="refresh" content="0; url=HTTP://o.test:80/./old.xml">',
        '<meta http-equiv="refresh" content="0; url=javascript:alert(1)">',
        '<meta http-equiv="refresh" content="0; url=file:///etc/passwd">',
        '<meta name="refresh" content="0; url=/new.xml">',
        '<!-- <meta http-equiv="refresh" content="0; url=/new.xml"> -->',
        '<script>"<meta http-equiv=refresh content=0;/new.xml>"</script>',
        '<meta http-equiv="refresh" content="0; url=/en/"><link rel=alternate type=text/xml href=/feed>',
        '<rss><channel><item><description><![CDATA[<meta http-equiv="refresh" content="0;/new.xml">]]>',
        '{"version": "https://jsonfeed.org/version/1", "x": "<meta http-equiv=refresh content=0;/new.xml>"}',
    ],
)
def test_other_pages_are_read_themselves(page: str) -> None:
    """Row 154: pages that reload themselves, wait, lead nowhere or announce another feed, and a feed that
    calls itself HTML.
    """
    assert refresh_target(page.encode(), "http://o.test/old.xml", "text/html") == ""


@pytest.mark.fault("154")
def test_a_refresh_field_leads_on_from_what_is_no_feed() -> None:
    """Row 154: browsers obey it; it counts before the page's own."""
    page = b"<html><meta http-equiv=refresh content=0;/b>moved</html>"
    for body, media_type in ((page, "text/html"), (b"moved", "text/plain"), (b"", "")):
        assert refresh_target(body, "http://o.test/old", media_type, "0; url=new") == "http://o.test/new"
    assert refresh_target(b"<feed/>", "http://o.test/old", "text/xml", "0; url=new") == ""
    assert refresh_target(b"moved", "http://o.test/old", "text/plain", "300") == ""


@pytest.mark.fault("87")
@pytest.mark.parametrize(
    "unit",
    [
        *("<a b=c>", "<p>", "&amp;", "<!--", "<!-- -->", "<script>", "</", "<link ", "<link x='", "<link>"),
        *("<b", "<title>", "<", "<meta ", "<meta>", "<a:"),
    ],
)
def test_a_large_page_is_searched_in_no_time(unit: str) -> None:
    """Row 87: for any page, since the search runs on the event loop."""
    page = LINK + unit * (1_000_000 // len(unit))
    with cpu_limit(0.05):
        found = discover(page.encode(), "http://example.org/", "text/html")
    assert [each.url for each in found] == ["http://example.org/feed"]
    page = f"refresh {page}"
    with cpu_limit(0.05):
        assert refresh_target(page.encode(), "http://example.org/", "text/html") == ""


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- {} -->",
        "<script>{}</script>",
        "<style>{}</STYLE>",
        "<textarea>{}</textarea>",
        "<title>{}</title>",
    ],
)
def test_what_is_no_markup_announces_nothing(hidden: str) -> None:
    """WHATWG HTML, 13.1.2: comments, scripts and texts; links after them do count."""
    other = LINK.replace("/feed", "/other")
    assert [
        each.url for each in discover((hidden.format(other) + LINK).encode(), "http://example.org/", "")
    ] == ["http://example.org/feed"]


LINK = "<link rel=alternate type='application/atom+xml' title='a > b' href='/feed'>"
