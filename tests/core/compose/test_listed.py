"""A page's list as a feed document, and the links of a document's entries."""

from __future__ import annotations

import pytest

from tests.feeds import an_item, atom, json_feed, rdf, rss
from wholefeed.core.compose.listed import named_entries, without, write_list
from wholefeed.core.facts import Stored
from wholefeed.core.listing.joined_sources import ListedEntry
from wholefeed.core.listing.lists import FeedEntry
from wholefeed.core.model import MEDIA_TYPE, Family, entry_id
from wholefeed.core.text.dates import parse_rfc3339

LINK = "https://a.example/2009/03/14/pi/?a=1&b=2"
ODD = 'Tom & "Jerry" <3 \x07 ]]> \U0001f600'
PLAIN = 'Tom & "Jerry" <3 ]]> \U0001f600'
AT = parse_rfc3339("2009-03-14T15:09:26Z")
VERSIONS = {Family.ATOM: "1.0", Family.RSS: "2.0", Family.RDF: "1.0", Family.JSON: "1.1"}
in_all_formats = pytest.mark.parametrize("family", list(Family))


def entry(link: str = LINK, title: str = ODD, at: float | None = AT) -> ListedEntry:
    return ListedEntry(link=link, title=title, at=at, dated_by="page" if at else "")


def a_list(family: Family, *entries: ListedEntry, older: Stored | None = None) -> Stored:
    body = write_list(entries, family, VERSIONS[family], undated_at=1.0, older=older)
    return Stored(body, "https://a.example/archive/", MEDIA_TYPE[family])


@in_all_formats
def test_an_entry_is_a_link_a_title_and_a_date(family: Family) -> None:
    """H5: the link is the identity; characters outside XML are left out."""
    (found,) = named_entries(a_list(family, entry()))
    assert found.link == LINK
    assert " ".join(found.title.split()) == " ".join(PLAIN.split())
    assert found.at == AT
    (written,) = a_list(family, entry()).parse().entries
    assert written.identity == entry_id(LINK)
    assert not written.has_content


@pytest.mark.parametrize("family", [Family.RSS, Family.RDF])
@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("Q & A, AT&T, 2 > 1", "Q &amp; A, AT&amp;T, 2 &gt; 1"),
        ("The <head> of a page", "The &amp;lt;head&amp;gt; of a page"),
        ("a < b & c", "a &amp;lt; b &amp;amp; c"),
        ("I <3 feeds", "I &amp;lt;3 feeds"),
        ("What &lt; means", "What &amp;amp;lt; means"),
    ],
)
def test_a_title_in_rss_is_html_only_where_that_makes_a_difference(
    family: Family, title: str, written: str
) -> None:
    """H5: readers that expect HTML lose no text; all read a bare ampersand correctly."""
    document = a_list(family, entry(title=title))
    assert f"<title>{written}</title>".encode() in document.body
    assert [each.title for each in named_entries(document)] == [title]


@pytest.mark.parametrize("family", [Family.ATOM, Family.JSON])
def test_a_title_in_other_formats_is_the_text_that_it_is(family: Family) -> None:
    """H5; RFC 4287, section 3.1.1.1: these formats need no guess."""
    document = a_list(family, entry(title="The <head> of a page"))
    assert (b"<title>The &lt;head&gt;" in document.body) == (family is Family.ATOM)
    assert [each.title for each in named_entries(document)] == ["The <head> of a page"]


@in_all_formats
def test_a_date_that_nobody_knows_is_not_made_up(family: Family) -> None:
    """H5: Atom requires a date, and gets the time of the look (RFC 4287, 4.2.15)."""
    (found,) = named_entries(a_list(family, entry(at=None)))
    assert found.at == (1.0 if family is Family.ATOM else None)


@in_all_formats
def test_what_was_listed_before_stands_behind_what_is_new(family: Family) -> None:
    """H7, H8: nothing leaves a list after a second look."""
    before = a_list(family, entry("https://a.example/2"), entry("https://a.example/1"))
    now = a_list(family, entry("https://a.example/3"), older=before)
    assert [each.link[-1] for each in named_entries(now)] == ["3", "2", "1"]


@in_all_formats
def test_entries_can_be_taken_out(family: Family) -> None:
    """H6: also all of them."""
    before = a_list(family, *(entry(f"https://a.example/{n}") for n in (3, 2, 1)))
    rest = before._replace(body=without(before, [0, 2]))
    assert [each.link[-1] for each in named_entries(rest)] == ["2"]
    assert named_entries(rest._replace(body=without(rest, [0]))) == []


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed])
def test_the_entries_of_a_publisher_s_document_are_named(make: object) -> None:
    """H6: link, title and date, from the top, in any format."""
    body = make(an_item("b", 5), an_item("a", 2))  # type: ignore[operator]
    media_type = "application/feed+json" if make is json_feed else "application/xml"
    found = named_entries(Stored(body, "http://blog.example.org/feed", media_type))
    assert all(isinstance(each, FeedEntry) for each in found)
    assert len(found) == 2
    assert [each.at is not None for each in found] == [True, True]
    assert found[0].link != found[1].link or not found[0].link


def test_a_link_that_is_relative_is_named_absolute() -> None:
    """H6, R11: it is compared with links of pages."""
    body = (
        b'<rss version="2.0"><channel><title>t</title><link>https://a.example/</link>'
        b"<item><title>x</title><link>/2019/x/</link><guid>1</guid></item></channel></rss>"
    )
    (found,) = named_entries(Stored(body, "https://a.example/feed", "application/xml"))
    assert found.link == "https://a.example/2019/x/"
