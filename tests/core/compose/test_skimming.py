"""wholefeed.core.compose.skimming: titles and dates of all entries, without the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.feeds import an_item, atom, atom_03, json_feed, rdf, rss
from wholefeed.core.compose.entries import parse_for_page, read_item_heading
from wholefeed.core.compose.skimming import SkimmedSegment, Skimmer, YearRun, fold
from wholefeed.core.model import SEPARATOR, Family, default_namespace
from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.fragments import fragments_of

ODD = (
    '<entry><id>urn:b</id><title type="html">&lt;b>bold&lt;/b> &amp;amp; <![CDATA[x]]></title>'
    "<published>2019-03-03</published><updated>2024-01-01T10:00:00Z</updated></entry>"
    '<entry><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <i>b</i></div></title>'
    "<content><title>not this one</title></content></entry>"
    '<entry xmlns:m="urn:m"><m:title>foreign</m:title><id>urn:c</id></entry>'
    f"<entry><id>urn:d</id><title>{'T' * 10_000}</title></entry>"
    "<entry/>"
)


def skimmed(body: bytes) -> tuple[SkimmedSegment, list[Any]]:
    """Return a document's entries, skimmed as a segment in small pieces, and read whole."""
    document = parse(body, "http://site.test/")
    family, namespace = document.family, default_namespace(document.family, document.version)
    fragments = fragments_of(document, namespace)
    texts = [fragments.sent(number) for number in range(len(document.entries))]
    whole = [parse_for_page(family, each, namespace=namespace) for each in texts]
    if family is Family.JSON:
        return SkimmedSegment.of(read_item_heading(each, is_cut=False) for each in texts), whole
    skimmer, text = Skimmer(family, namespace), SEPARATOR[family].join(texts)
    for start in range(0, len(text), 7):
        skimmer.add(text[start : start + 7])
    return skimmer.end(), whole


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf, json_feed])
def test_skimming_and_reading_say_the_same(make: Any) -> None:
    """The name, title and date of each entry, in all formats."""
    found, whole = skimmed(make(an_item("a", 2, "&lt;p>x&lt;/p>"), an_item("b", 1), an_item("c", None)))
    assert len(found) == 3
    assert [(each.name, each.title, each.date) for each in found] == [
        (each.name, each.title, each.date) for each in whole
    ]
    assert [each.title for each in found] == ["a", "b", "c"]


def test_odd_entries_have_the_same_names_and_titles() -> None:
    """Markup, other namespaces, no id, no title, very long titles."""
    found, whole = skimmed(atom(extra=ODD))
    assert [each.name for each in found] == [each.name for each in whole]
    titles = [each.title for each in found]
    assert titles == ["bold & x", "a b", "", "T" * 300 + "…", ""]
    assert [each.date for each in found] == [each.date for each in whole]
    assert found[0].date.on == "2019-03-03"


@pytest.mark.parametrize("make", [atom, rss, json_feed])
def test_an_entry_without_a_title_has_the_beginning_of_its_text(make: Any) -> None:
    """Posts of microblogs have no titles."""
    body = make(an_item("a", 1, "&lt;p>Fog over&lt;/p>&lt;p>the sea&lt;/p> " * 100))
    if make is json_feed:
        feed = json.loads(body)
        feed["items"][0] |= {"title": "", "content_html": "<p>Fog over</p><p>the sea</p>" * 100}
        body = json.dumps(feed).encode()
    body = body.replace(b"<title>a</title>", b"<title> </title>").replace(
        b"<content>", b'<content type="html">'
    )
    if make is rss:
        body = body.replace(b"<item>", b'<item xmlns:m="urn:m"><m:title>foreign</m:title>')
    found, _ = skimmed(body)
    assert found[0].title.startswith("Fog over the sea Fog over")
    assert len(found[0].title) <= 101


def test_all_words_are_found_in_any_order_and_case() -> None:
    """Unicode's case folding and equivalence count, too."""
    titles = ("Die STRASSE am Meer", "Am Fluss", "straße", "Cafe\u0301 \uff15")
    found, _ = skimmed(rss(*map(an_item, titles)))

    def places(words: str) -> list[int]:
        return [place for place, _ in found.find(fold(words).split())]

    assert places("meer straße") == [0]
    assert places("straSSe") == [0, 2]
    assert places("am") == [0, 1]
    assert places("am nowhere") == []
    assert places("caf\u00e9 5") == [3]


def test_years_are_those_that_are_shown() -> None:
    """A run has its place; undated entries are of none."""
    dates = ("2024-05-01", "2024", None, "2023-12-31T23:59:59Z", "2020-01-01T00:00:00+09:00", "2019-12-31")
    entries = "".join(
        f"<entry><id>urn:{n}</id>{f'<published>{at}</published>' if at else ''}</entry>"
        for n, at in enumerate(dates)
    )
    found, _ = skimmed(atom(extra=entries))
    assert found.years == (
        YearRun(2024, 0, 2),
        YearRun(2023, 3, 1),
        YearRun(2020, 4, 1),
        YearRun(2019, 5, 1),
    )


def test_text_that_is_no_segment_is_told() -> None:
    """A damaged store is no reason for a wrong title."""
    skimmer = Skimmer(Family.ATOM, default_namespace(Family.ATOM))
    with pytest.raises(ValueError, match="expected entries"):
        skimmer.add(b"<entry></x>")
