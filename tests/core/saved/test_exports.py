"""wholefeed.core.saved: exports of feed readers in JSON, as their programs write them, and others (I4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.feeds import json_feed
from tests.saved_files import Post, feedbin, freshrss, google_reader, miniflux
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.saved.exports import may_be_export, read_export
from wholefeed.core.saved.interchange import write_interchange
from wholefeed.core.saved.saved_entries import SavedEnclosure, SavedEntry, SavedFeed, SavedFile, plain_title

FEED = "http://site.test/feed"
POSTS = [Post("a", 1, FEED), Post("b", 2, FEED), Post("x", 3, "http://x.test/f")]
WRITERS = {"Google Reader": google_reader, "FreshRSS": freshrss, "miniflux": miniflux}


@pytest.mark.parametrize("program", WRITERS)
def test_entries_are_sorted_by_feed(program: str) -> None:
    """I4: with all that the program saves of each."""
    body = WRITERS[program](POSTS)
    assert may_be_export(body)
    file = read_export(body)
    assert file is not None
    assert file.program == program
    assert [(feed.url, len(feed.entries)) for feed in file.feeds] == [(FEED, 2), ("http://x.test/f", 1)]
    expected = SavedEntry(
        id="urn:a" if program == "FreshRSS" else "",
        link="http://site.test/a",
        title="a & more",
        author="Ann",
        published_at=float(POSTS[0].at),
        content="<p>saved text of a</p>",
    )
    assert file.feeds[0].entries[0] == expected


def test_feedbin_names_no_feeds() -> None:
    """I4: its export, and its API, which numbers them."""
    starred, numbered = (
        read_export(feedbin(POSTS)),
        read_export(feedbin(POSTS, numbers={FEED: 1, POSTS[2].feed: 2})),
    )
    assert starred is not None
    assert numbered is not None
    assert [(feed.url, feed.is_numbered, len(feed.entries)) for feed in starred.feeds] == [("", False, 3)]
    assert [(feed.is_numbered, len(feed.entries)) for feed in numbered.feeds] == [(True, 2), (True, 1)]


def test_google_s_items_may_have_a_summary_alone() -> None:
    """I4: as of feeds that are cut; an update beside the date of publication is kept."""
    item = {
        "id": "http://blog.test/1",  # an old FreshRSS
        "published": 1_300_000_000,
        "updated": 1_300_000_100,
        "alternate": [{"href": "http://blog.test/1"}],
        "summary": {"content": "short"},
        "enclosure": [{"href": "http://blog.test/1.mp3", "type": "audio/mpeg", "length": 5}],
        "origin": {"streamId": "feed/http://blog.test/feed"},
    }
    file = read_export(json.dumps({"items": [item]}).encode("utf-8-sig"))
    assert file is not None
    (entry,) = file.feeds[0].entries
    assert (entry.id, entry.content, entry.summary) == ("http://blog.test/1", "short", "")
    assert (entry.published_at, entry.updated_at) == (1_300_000_000, 1_300_000_100)
    assert entry.enclosures == (SavedEnclosure("http://blog.test/1.mp3", "audio/mpeg", 5),)


@pytest.mark.parametrize(
    "body",
    [json_feed(), b"[]", b"{}", b'{"items": []}', b"<feed/>", b"{", b"[1]", b'[{"id": 1}]', b"[" * 100_000],
    ids=str,
)
def test_other_json_is_no_export(body: bytes) -> None:
    """I4: it goes its way as a document of a feed; nesting ends in no crash."""
    assert read_export(body) is None


def test_values_are_bounded() -> None:
    """docs/faults.md row 128: a digit and a comma become a hundred bytes."""
    with pytest.raises(ParseError, match="fewer JSON values"):
        read_export(b"[" + b"0," * 2_100_000 + b"0]")


ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
MEMBERS = (
    "id", "guid", "url", "title", "author", "published", "created_at", "published_at", "content", "summary",
    "canonical", "enclosure", "enclosures", "origin", "feed", "authors", "attachments", "items",
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(MEMBERS), ANY), st.sampled_from(["google", "miniflux", "feedbin", "own"])
)
def test_members_of_any_type_are_read(entry: dict[str, Any], program: str) -> None:
    """I4: a hostile or future export never makes it fail; entries have texts and finite dates."""
    value: Any = {
        "google": {"items": [entry | {"origin": {"streamId": f"feed/{FEED}"}}]},
        "miniflux": {"entries": [entry | {"feed": {"feed_url": FEED}, "published_at": entry.get("id")}]},
        "feedbin": [dict.fromkeys(("id", "url", "title", "published", "created_at")) | entry],
        "own": {"_wholefeed": {"saved_by": "x"}, "items": [entry]},
    }[program]
    file = read_export(json.dumps(value).encode())
    assert file is not None
    (made,) = file.feeds[0].entries
    made.title.encode()
    assert made.published_at is None or 0 < made.published_at < 1e12


def test_a_number_beyond_all_dates_is_no_date() -> None:
    """I4: JSON bounds no number."""
    item = {"origin": {"streamId": f"feed/{FEED}"}, "published": 10**400, "updated": -(10**400)}
    file = read_export(json.dumps({"items": [item]}).encode())
    assert file is not None
    assert file.feeds[0].entries[0].order_at is None


ENTRIES = [
    SavedEntry(
        id="urn:a",
        link="http://site.test/a",
        title="A & <b>",
        author="Ann",
        published_at=1e9,
        updated_at=1.1e9,
        content="<p>text</p>",
        summary="short",
        base="http://site.test/",
        enclosures=(
            SavedEnclosure("http://site.test/a.mp3", "audio/mpeg", 7),
            SavedEnclosure("http://site.test/b"),
        ),
    ),
    SavedEntry(link="http://site.test/b"),
]


def test_parts_of_a_large_file_lose_nothing() -> None:
    """I4: what is sent in parts is what was read."""
    parts = list(write_interchange("newsboat", FEED, ENTRIES, part_bytes=10))
    assert [read_export(part) for part in parts] == [
        SavedFile("newsboat", [SavedFeed(FEED, [entry])]) for entry in ENTRIES
    ]
    assert len(list(write_interchange("newsboat", FEED, ENTRIES, part_bytes=10_000))) == 1


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("A &amp; B", "A & B"),
        ("<b>A</b>\n  B", "A B"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("&lt;b&gt;", "<b>"),
        ("<" * 50_000, "<" * 50_000),
    ],
    ids=["entity", "tags", "signs", "escaped tag", "many signs"],
)
def test_titles_are_plain_text(written: str, title: str) -> None:
    """I4: programs save them as HTML."""
    assert plain_title(written) == title
