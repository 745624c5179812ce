"""Keys of entries without an id, and how they become ambiguous (rule R9)."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import empty_store
from tests.core.parse.makers import rss
from tests.postgres import Cluster
from tests.store.conftest import connected
from tests.store.makers import NOW, URL
from wholefeed.core.facts import DocumentFacts
from wholefeed.core.model import EntryId, EntryKeys, Family, Kind, Role
from wholefeed.core.parse.documents import parse
from wholefeed.store.base import Database, fetch_value
from wholefeed.store.rows import NewDocument
from wholefeed.store.tables import document_table, feed_table
from wholefeed.store.tables.live import TEMPORARY_TABLES

Item = tuple[str, str, str]
"""Link, enclosure and title; each may be empty."""

items = st.tuples(
    st.sampled_from(["", "/a", "/b"]), st.sampled_from(["", "/1.mp3", "/2.mp3"]), st.sampled_from("xy")
)
bodies = st.lists(st.lists(items, max_size=3), min_size=1, max_size=4)


Databases = Callable[[], AbstractContextManager[Any]]
"""Gives an empty database."""


@contextmanager
def of_sqlite() -> Iterator[Any]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.row_factory = sqlite3.Row
        db.deserialize(empty_store.image())
        db.executescript(TEMPORARY_TABLES)
        yield db


@pytest.fixture(scope="module")
def of_postgres(shared_postgres: Cluster, postgres_template: str) -> Iterator[Databases]:
    """Two databases in turn; their transactions are undone at the end."""
    with ExitStack() as stack:
        urls = [stack.enter_context(shared_postgres.database(postgres_template)) for _ in range(2)]
        free = [connected(url) for url in urls]
        for db in free:
            stack.callback(db.close)
            db.executescript(TEMPORARY_TABLES)

        @contextmanager
        def give() -> Iterator[Any]:
            db = free.pop()
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.raw.rollback()
                free.append(db)

        yield give


@pytest.fixture(scope="module", params=["SQLite", "PostgreSQL"])
def a_database(request: pytest.FixtureRequest) -> Databases:
    """An empty database, on each engine in turn."""
    if request.param == "SQLite":
        return of_sqlite
    found: Databases = request.getfixturevalue("of_postgres")
    return found


def a_document(number: int, body: Sequence[Item], channel: str = "") -> NewDocument:
    written = "".join(
        f"<item><title>{title}</title>"
        + (f"<link>{link}</link>" if link else "")
        + (f'<enclosure url="{enclosure}"/>' if enclosure else "")
        + "</item>"
        for link, enclosure, title in body
    )
    text = rss((f"<link>{channel}</link>" if channel else "") + written)
    facts = DocumentFacts.of(parse(text, "http://o.test/feed"))
    return NewDocument(
        url=f"http://o.test/{number}",
        final_url=f"http://o.test/{number}",
        role=Role.ARCHIVE,
        rank=number,
        family=Family.RSS,
        body=text,
        digest=b"",
        media_type="application/rss+xml",
        fetched_at=NOW,
        parser_version=5,
        entries=facts.entries,
        keys=facts.keys,
        ambiguous=facts.ambiguous,
    )


def a_feed(db: Database) -> int:
    made = feed_table.create(db, url=URL, fetch_url=URL, family=Family.RSS, kind=Kind.ARCHIVED, now=NOW)
    return made.id


def put(db: Database, new: Sequence[NewDocument]) -> int:
    feed = a_feed(db)
    for each in new:
        document_table.put(db, feed, [each], NOW)
    return feed


def identities(db: Database, feed: int) -> dict[tuple[str, int], bytes]:
    rows = db.execute(
        "SELECT url, ordinal, identity FROM entry JOIN document ON document.id = entry.document"
        " WHERE entry.feed = ?",
        (feed,),
    )
    return {(row["url"], row["ordinal"]): row["identity"] for row in rows}


def live(db: Database, feed: int) -> set[tuple[str, int]]:
    rows = db.execute(
        "SELECT url, ordinal FROM entry JOIN document ON document.id = entry.document"
        " WHERE entry.feed = ? AND is_live = 1",
        (feed,),
    )
    return {(row["url"], row["ordinal"]) for row in rows}


def expected(new: Sequence[NewDocument]) -> dict[tuple[str, int], EntryId]:
    """Identities by the rule, with all documents looked at together."""
    keyed: dict[tuple[str, int], EntryKeys] = {
        (document.url, ordinal): keys for document in new for ordinal, keys in document.keys
    }
    ambiguous = {key for document in new for key in document.ambiguous}
    for one, other in itertools.combinations(keyed.values(), 2):
        if one.enclosures and other.enclosures and one.enclosures != other.enclosures:
            shared = {one.link, one.enclosure} & {other.link, other.enclosure}
            ambiguous |= {key for key in shared if key is not None}
        if one.enclosure and one.enclosure == other.enclosure and one.link != other.link:
            ambiguous.add(one.enclosure)
    return {place: keys.identity(ambiguous) for place, keys in keyed.items()}


@given(bodies, st.randoms())
def test_the_order_of_arrival_does_not_matter(
    a_database: Databases, found: list[list[Item]], chance: object
) -> None:
    """R9: identities and live copies equal those of all documents looked at together, in any order of
    arrival."""
    new = [a_document(number, body, "/a" if number == 1 else "") for number, body in enumerate(found)]
    shuffled = list(new)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    with a_database() as db, a_database() as other:
        first, second = put(db, new), put(other, shuffled)
        assert identities(db, first) == expected(new)
        assert identities(other, second) == expected(new)
        assert live(db, first) == live(other, second)


@given(bodies)
def test_items_only_ever_split(a_database: Databases, found: list[list[Item]]) -> None:
    """R9: two distinct entries never merge again, as long as both stand in the feed."""
    apart: set[tuple[tuple[str, int], tuple[str, int]]] = set()
    with a_database() as db:
        feed = a_feed(db)
        for number, body in enumerate(found):
            document_table.put(db, feed, [a_document(number, body)], NOW)
            named = identities(db, feed)
            pairs = set(itertools.permutations(named, 2))
            assert all(named[one] != named[other] for one, other in apart)
            apart |= {(one, other) for one, other in pairs if named[one] != named[other]}


def test_what_is_settled_or_deleted_stays_so_when_it_splits(a_database: Databases) -> None:
    """R8, R19: the marks of an identity pass to each of its entries."""
    one = a_document(0, [("/a", "/1.mp3", "x")])
    other = replace(a_document(0, [("/a", "/2.mp3", "x")]), url="http://o.test/1", role=Role.PAGE)
    with a_database() as db:
        feed = put(db, [one])
        (before,) = identities(db, feed).values()
        db.execute("INSERT INTO settled (feed, identity, is_withdrawn) VALUES (?, ?, 1)", (feed, before))
        db.execute(
            "INSERT INTO tombstone (feed, identity, when_at, ref) VALUES (?, ?, ?, '')", (feed, before, NOW)
        )
        document_table.put(db, feed, [other], NOW)
        after = identities(db, feed)["http://o.test/0", 0]
        assert after != before
        for table in ("settled", "tombstone"):
            known = {row["identity"] for row in db.execute(f"SELECT identity FROM {table}")}
            assert known == {before, after}
        assert {row["is_withdrawn"] for row in db.execute("SELECT is_withdrawn FROM settled")} == {1}


def test_a_document_that_goes_takes_its_keys_with_it(a_database: Databases) -> None:
    """R9: ambiguity is remembered for good; an item in no document clashes with nothing."""
    with a_database() as db:
        page = replace(a_document(0, [("/a", "/1.mp3", "x")]), role=Role.PAGE)
        feed = put(db, [page])
        document_table.put(db, feed, [replace(a_document(0, [("", "", "y")]), role=Role.PAGE)], NOW)
        document_table.put(db, feed, [a_document(1, [("/a", "/2.mp3", "x")])], NOW)
        assert fetch_value(db, "SELECT count(*) FROM ambiguous_key") == 0


@pytest.mark.fault("89")
def test_items_of_one_link_and_enclosure_are_not_compared_with_each_other() -> None:
    """Row 89: twice the items with the same keys as all stored ones are twice the work."""

    def steps(number: int) -> int:
        first, second = (
            a_document(n, [("/a", "/1.mp3", f"{n} {i}") for i in range(number)]) for n in range(2)
        )
        counted = itertools.count()
        with of_sqlite() as db:
            feed = put(db, [first])
            db.set_progress_handler(lambda: next(counted) and None, 100)
            document_table.put(db, feed, [second], NOW)
        return next(counted)

    assert steps(600) < 3 * steps(300)
