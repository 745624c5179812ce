"""Real and conformance feeds (the corpus beside the project), with feedparser as oracle."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import feedparser
import pytest

from tests.core.parse.makers import URL, named, slices
from wholefeed.core.compose.compose import synthesize
from wholefeed.core.model import MEMORY_URL, Family, FeedDocument
from wholefeed.core.notes import DocumentRepaired, DocumentTruncated, IdentityUnusable
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.verbatim.fragments import fragments_of

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
FOLDERS = [CORPUS / "rfc5005", CORPUS / "real", CORPUS / "conf"]

OTHER_COUNTS = {
    "atom/4.2.11/missing-self.xml": "feedparser also counts an entry inside of atom:source",
    "atom/4.2.11/source-entry.xml": "feedparser also counts an entry inside of atom:source",
    "xml/v/v4.xml": "feedparser also counts an item inside of an item",
    "xml/v/v5.xml": "feedparser also counts an item inside of an item",
    "xml/v/v6.xml": "feedparser also counts an item inside of an item",
}
REFUSED = {
    "feed-rs/fixture/atom/atom_entry_1.xml": "a single entry is no feed",
    "testcases/atom/2/brief-entry-noerror.xml": "a single entry is no feed",
    "testcases/atom/4.1.2/entry-source-author.xml": "a single entry is no feed",
    "wellformed/rss/entity_in_doctype.xml": "its DOCTYPE has an internal subset (docs/faults.md row 41)",
}

SLUGS = {
    *("malformed-xml", "malformed-json", "dtd-forbidden", "xml-limit", "not-a-feed"),
    *("unsupported-format", "unsupported-encoding"),
}

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real feeds is absent: {CORPUS}")


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def parsed(body: bytes) -> FeedDocument | ParseError:
    try:
        return parse(body, URL)
    except ParseError as error:
        return error


def by_feedparser(body: bytes) -> feedparser.FeedParserDict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return feedparser.parse(body)


def is_listed(path: Path, table: dict[str, str]) -> bool:
    return any(path.as_posix().endswith(ending) for ending in table)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_feed_is_read_as_feedparser_does_or_refused_with_a_reason(folder: Path, step: int) -> None:
    """docs/design.md#parsing: no other exception; the entries equal feedparser's."""
    read = 0
    for path in files(folder)[::step]:
        body = path.read_bytes()
        document = parsed(body)
        if isinstance(document, ParseError):
            assert document.slug in SLUGS, path
            assert is_listed(path, REFUSED) or not is_readable(body), path
            continue
        read += 1
        theirs = by_feedparser(body)
        if document.family is Family.JSON:
            assert len(document.entries) == len(json.loads(body)["items"]), path
        elif not theirs.bozo and not is_listed(path, OTHER_COUNTS):
            assert len(document.entries) == len(theirs.entries), path
    assert read > {"rfc5005": 40, "real": 150, "conf": 1000}[folder.name] / step


def is_readable(body: bytes) -> bool:
    """Whether feedparser finds entries without trouble, in a supported format."""
    theirs = by_feedparser(body)
    is_ours = theirs.get("version", "").startswith(("atom10", "atom03", "rss"))
    return is_ours and bool(theirs.entries) and not theirs.bozo


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_feed_s_entries_survive_a_synthesized_document(folder: Path, step: int) -> None:
    """R22: the same identities and instants; a second pass adds nothing."""
    for path in files(folder)[::step]:
        document = parsed(path.read_bytes())
        if isinstance(document, ParseError):
            continue
        made = fragments_of(document)
        sent = [made.entry(n) for n in range(len(document.entries))]
        again = parse(synthesize(document.family, document.version, sent), f"{MEMORY_URL}1")
        if not any(note.kind is IdentityUnusable for note in document.notes):  # one copy shows none
            assert named(again) == named(document), path
        assert slices(again) == sent, path
        made = fragments_of(again)
        assert [made.entry(n) for n in range(len(sent))] == sent, path


FIELDS = ("id", "title", "link", "updated", "published", "summary")
READ = 65
"""Count of the corpus documents that only a repair makes readable."""
OTHERWISE = {
    "rss_incomplete_cdata.xml": "feedparser also shows the item that breaks off",
    "amp-hex-name.xml": "a reference to U+001A, which XML does not allow, becomes U+FFFD",
    "atom10_feed_title_xhtml_inline_markup.xml": "feedparser does not see a title whose end tag is misspelt",
    "atom_example_1.xml": "in Atom without a namespace feedparser shows the div around XHTML",
    "DuplicateContentAtomFeed.xml": "feedparser does not see the feed's title in a page of HTML",
    "issue_320_legacy_entity_prefix.xml": "feedparser takes the copy of ?page=1&copy=2 for an entity",
}
"""Documents whose entries differ from feedparser's in the original."""


def seen(body: bytes) -> list[Any]:
    found = by_feedparser(body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entries = [{name: entry.get(name) for name in FIELDS} for entry in found.entries]
    return [found.feed.get("title"), *entries]


def test_repaired_feeds_hold_what_feedparser_sees() -> None:
    """docs/design.md#repair: real feeds."""
    read, same = [], []
    for path in files(CORPUS):
        body = path.read_bytes()
        document = parsed(body)
        if isinstance(document, FeedDocument) and any(
            note.kind in (DocumentRepaired, DocumentTruncated) for note in document.notes
        ):
            read.append(path)
            same += [path] if seen(document.text) == seen(body) else []
    assert len(read) >= READ
    assert {path.name for path in set(read) - set(same)} <= OTHERWISE.keys()
