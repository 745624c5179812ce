"""The ill-formed feeds of the corpus beside the project, with feedparser for an oracle."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import feedparser
import pytest

from tests.core.parse.makers import URL
from wholefeed.core.notes import DocumentRepaired, DocumentTruncated
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError

CORPUS = Path(__file__).parents[4].parent / "shared" / "corpus"
FIELDS = ("id", "title", "link", "updated", "published", "summary")
READ = 65
"""How many documents of the corpus can be read because they were repaired."""
OTHERWISE = {
    "rss_incomplete_cdata.xml": "feedparser also shows the item that breaks off",
    "amp-hex-name.xml": "a reference to U+001A, which XML does not allow, becomes U+FFFD",
    "atom10_feed_title_xhtml_inline_markup.xml": "feedparser does not see a title whose end tag is misspelt",
    "atom_example_1.xml": "in Atom without a namespace feedparser shows the div around XHTML",
    "DuplicateContentAtomFeed.xml": "feedparser does not see the feed's title in a page of HTML",
    "issue_320_legacy_entity_prefix.xml": "feedparser takes the copy of ?page=1&copy=2 for an entity",
}
"""Those that hold something else than what feedparser finds in the original."""

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real feeds is absent: {CORPUS}")


def seen(body: bytes) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = feedparser.parse(body)
        entries = [{name: entry.get(name) for name in FIELDS} for entry in found.entries]
        return [found.feed.get("title"), *entries]


def test_repaired_feeds_hold_what_feedparser_sees() -> None:
    """docs/design.md#repair: feeds as they are."""
    read, same = [], []
    for path in sorted(path for path in CORPUS.rglob("*") if path.is_file()):
        body = path.read_bytes()
        try:
            document = parse(body, URL)
        except ParseError:
            continue
        if any(note.kind in (DocumentRepaired, DocumentTruncated) for note in document.notes):
            read.append(path)
            same += [path] if seen(document.text) == seen(body) else []
    assert len(read) >= READ
    assert {path.name for path in set(read) - set(same)} <= OTHERWISE.keys()
