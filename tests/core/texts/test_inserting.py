"""T1, T4 and T5: entries that want a text, and what becomes of them with it."""

from __future__ import annotations

import json

import feedparser
import pytest

from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.entries import parse_for_page
from wholefeed.core.model import ATOM_03_NS, Family, default_namespace
from wholefeed.core.texts.inserting import PageTextOf, insert_texts
from wholefeed.core.texts.wanted import page_key, read_entry_page

URL = "https://blog.example/1?a=1&b=2"
TEXT = '<p>The <b>whole</b> text &amp; more of it than "before".</p>'
PAGE = PageTextOf(URL, TEXT, 35)
LINK = "https://blog.example/1?a=1&amp;b=2"
ITEM = f"<item><title>T</title><link>{LINK}</link>%s</item>"
ENTRY = (
    f'<entry><id>x</id><title>T</title><link href="{LINK}"/><updated>2020-01-01T00:00:00Z</updated>%s</entry>'
)
RDF = f'<item rdf:about="x"><title>T</title><link>{LINK}</link>%s</item>'
WRITTEN = {
    Family.RSS: (ITEM, "<description>Cut [\u2026]</description>"),
    Family.ATOM: (ENTRY, '<summary type="html">Cut [\u2026]</summary>'),
    Family.RDF: (RDF, "<description>Cut [\u2026]</description>"),
}


def insert(text: str, family: Family, page: PageTextOf | None = PAGE) -> str:
    namespace = default_namespace(family)
    return insert_texts([text.encode()], [page], family, namespace=namespace)[0].decode()


@pytest.mark.parametrize("family", WRITTEN)
@pytest.mark.parametrize("has_excerpt", [True, False])
def test_a_text_is_content_and_the_excerpt_stays_summary(family: Family, has_excerpt: bool) -> None:
    """T4: a reader finds both, and all else stands as it was."""
    form, excerpt = WRITTEN[family]
    before = form % (excerpt if has_excerpt else "")
    made = insert(before, family)
    end = before.rindex("</")
    assert made.startswith(before[:end])
    assert made.endswith(before[end:])
    read = feedparser.parse(synthesize(family, "2.0", [made.encode()]))["entries"][0]
    assert read.content[0].value == TEXT
    assert read.get("summary", "") == ("Cut [\u2026]" if has_excerpt else "") or not has_excerpt
    shown = parse_for_page(family, made.encode(), namespace=default_namespace(family))
    assert (shown.content, shown.text_page) == (TEXT, URL)


def test_a_cut_content_becomes_the_summary() -> None:
    """T4: where there is none, under its own name in each format."""
    atom = insert(ENTRY % '<content type="html" xml:lang="en">Cut &lt;b> [\u2026]</content>', Family.ATOM)
    assert '<summary type="html" xml:lang="en">Cut &lt;b> [\u2026]</summary>' in atom
    assert atom.count("<content") == 1
    encoded = "<content:encoded><![CDATA[Cut [\u2026]]]></content:encoded>"
    rss = insert(ITEM % encoded, Family.RSS)
    assert "<description><![CDATA[Cut [\u2026]]]></description>" in rss
    assert rss.count("<content:encoded") == 1


def test_an_entry_of_another_prefix_or_version_gets_its_own() -> None:
    """T4: elements stand in the namespace of the entry."""
    prefixed = (ENTRY % "").replace("<", "<a:").replace("<a:/", "</a:")
    prefixed = prefixed.replace("<a:entry>", '<a:entry xmlns:a="http://www.w3.org/2005/Atom">')
    assert '<a:content type="html">' in insert(prefixed, Family.ATOM)
    old = insert_texts([(ENTRY % "").encode()], [PAGE], Family.ATOM, namespace=ATOM_03_NS)[0]
    assert b'<content type="text/html" mode="escaped">' in old


def test_an_item_of_json_gets_members() -> None:
    """T4: the cut text is its summary; the mark is our own member."""
    item = {"id": "x", "url": URL, "title": "T", "content_text": "Cut [\u2026]", "_other": 1.50}
    made = json.loads(insert(json.dumps(item), Family.JSON))
    added = {"content_html": TEXT, "summary": "Cut [\u2026]", "_wholefeed": {"text": URL}}
    assert made == {**item, **added}
    shown = parse_for_page(Family.JSON, json.dumps(made).encode())
    assert (shown.content, shown.text_page) == (TEXT, URL)


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (ITEM % "<content:encoded>Whole.</content:encoded>", Family.RSS),
        (ITEM % f"<description>{'A long description. ' * 9}</description>", Family.RSS),
        (ENTRY % "<content>Whole.</content>", Family.ATOM),
        (ENTRY % '<content src="https://blog.example/1.mp3" type="audio/mpeg"/>', Family.ATOM),
        (json.dumps({"id": "x", "url": URL, "content_text": "Whole."}), Family.JSON),
    ],
)
def test_the_publisher_s_own_text_wins(text: str, family: Family) -> None:
    """T5: whole, or longer than the page's, or elsewhere."""
    assert insert(text, family) == text


def test_a_coded_content_stays_alone() -> None:
    """T5: of Atom 0.3; its text cannot be read."""
    coded = ENTRY % '<content type="text/html" mode="base64">V2hvbGUu</content>'
    assert insert_texts([coded.encode()], [PAGE], Family.ATOM, namespace=ATOM_03_NS) == [coded.encode()]


def test_without_a_stored_text_nothing_changes() -> None:
    """T1: not a byte."""
    assert insert(ITEM % "", Family.RSS, None) == ITEM % ""


@pytest.mark.parametrize(
    ("said", "wants"),
    [
        ("", True),
        ("<description>T</description>", True),
        ("<description>Words [&#8230;]</description>", True),
        ("<description>Words.</description>", True),
        ("<content:encoded>Words.</content:encoded>", False),
        ("<content:encoded>Words [&#8230;]</content:encoded>", True),
    ],
)
def test_an_entry_without_text_or_with_a_cut_one_wants_it(said: str, wants: bool) -> None:
    """T1: R10 knows which; a description may be an excerpt."""
    entry = read_entry_page((ITEM % said).encode(), Family.RSS, namespace="")
    assert (entry.key, entry.url) == (page_key(URL), URL)
    assert entry.wants_text(is_whole=False) is wants
    assert entry.wants_text(is_whole=True) is (wants and "Words." not in said)


def test_an_entry_without_a_link_wants_none() -> None:
    """T1: it has no page."""
    entry = read_entry_page(b"<item><title>T</title></item>", Family.RSS, namespace="")
    assert not entry.wants_text(is_whole=False)


def test_spellings_of_a_link_are_one_page() -> None:
    """T2: fetched once."""
    assert page_key("https://blog.example/1/") == page_key("http://blog.example/1?utm_source=feed#top")
