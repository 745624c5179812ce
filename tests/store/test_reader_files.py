"""wholefeed.store.reader_files: databases of feed readers, old, damaged and hostile ones (I4)."""

from __future__ import annotations

import sqlite3
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from tests.saved_files import NETNEWSWIRE, Post, a_database, lemon24, liferea, netnewswire, newsboat
from wholefeed.errors import ImportRefusedError
from wholefeed.store.reader_files import ReadingLimits, read_database, require_unused

FEED = "http://site.test/feed"
LIMITS = ReadingLimits(bytes=1 << 20, entries=1000, seconds=5)
POSTS = [Post("a", 1, FEED), Post("b", 2, FEED), Post("x", 3, "http://x.test/feed")]
WRITERS = {
    "newsboat": newsboat, "NetNewsWire": netnewswire, "lemon24/reader": lemon24, "Liferea": liferea
}  # fmt: skip
in_all_formats = pytest.mark.parametrize("program", WRITERS)


def changed(body: bytes, script: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(body)
        connection.executescript(script)
        return connection.serialize()


def refused(body: bytes | Path, limits: ReadingLimits = LIMITS) -> ImportRefusedError:
    with pytest.raises(ImportRefusedError) as caught:
        read_database(body, [FEED], limits)
    return caught.value


@in_all_formats
def test_a_file_is_read_as_its_bytes_are_and_stays_as_it_was(program: str, tmp_path: Path) -> None:
    """I4: nothing is written beside it, either."""
    body, path = WRITERS[program](POSTS), tmp_path / "a reader?.db"
    path.write_bytes(body)
    match = read_database(path, [FEED], LIMITS)
    assert match == read_database(body, [FEED], LIMITS)
    assert (match.program, match.url, match.feeds) == (program, FEED, 2)
    assert sorted(entry.id for entry in match.entries) == ["urn:a", "urn:b"]
    assert path.read_bytes() == body
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_with_a_name_that_is_no_text_is_one_as_well() -> None:
    """I4: SQLite quotes the schema's bytes, and Python cannot decode them."""
    broken = newsboat(POSTS).replace(b"CREATE TABLE rss_feed", b"CREATE TABL\xff rss_feed")
    assert refused(broken).slug == "unsupported-format"


def test_a_database_with_a_write_ahead_log_is_read(tmp_path: Path) -> None:
    """I4: lemon24/reader and Liferea use one; content not yet in the file is absent."""
    path = tmp_path / "db"
    path.write_bytes(newsboat(POSTS))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert len(read_database(path.read_bytes(), [FEED], LIMITS).entries) == 2
        connection.execute("UPDATE rss_item SET title = 'new'")
        connection.commit()
        with pytest.raises(ImportRefusedError, match="changes in db-wal: end the program"):
            require_unused(path)
    require_unused(path)


def test_a_log_lies_beside_the_target_of_a_link(tmp_path: Path) -> None:
    """I4: SQLite writes it there; a folder is no database."""
    path = tmp_path / "db"
    path.write_bytes(newsboat(POSTS))
    link = tmp_path / "link"
    link.symlink_to(path)
    (tmp_path / "db-wal").write_bytes(b"changes")
    with pytest.raises(ImportRefusedError, match="changes in db-wal: end the program"):
        require_unused(link)
    require_unused(Path("/"))


def test_versions_of_newsboat_differ_in_columns() -> None:
    """I4: missing newer columns are tolerated; a needed one is named."""
    older = changed(newsboat(POSTS), "ALTER TABLE rss_item DROP COLUMN base")
    assert [entry.base for entry in read_database(older, [FEED], LIMITS).entries] == ["", ""]
    error = refused(changed(newsboat(POSTS), "ALTER TABLE rss_item RENAME COLUMN guid TO uid"))
    assert error.slug == "unsupported-format"
    assert "newsboat, got another version of it, without rss_item.guid" in str(error)


def test_netnewswire_had_a_table_of_authors() -> None:
    """I4: until 2026."""
    script = """
    ALTER TABLE articles DROP COLUMN authors;
    CREATE TABLE authors (authorID TEXT NOT NULL PRIMARY KEY, name TEXT);
    CREATE TABLE authorsLookup (authorID TEXT NOT NULL, articleID TEXT NOT NULL);
    INSERT INTO authors VALUES ('n', 'Bob');
    INSERT INTO authorsLookup VALUES ('n', '0');
    """
    match = read_database(changed(netnewswire(POSTS), script), [FEED], LIMITS)
    assert {entry.id: entry.author for entry in match.entries} == {"urn:a": "Bob", "urn:b": ""}


def test_feeds_of_a_service_have_numbers() -> None:
    """I4: all feeds are returned, for the entries in common to tell."""
    match = read_database(netnewswire([Post("a", 1, "17"), Post("b", 1, "18")]), [FEED], LIMITS)
    assert [(feed.url, feed.is_numbered, len(feed.entries)) for feed in match.unnamed] == [("", True, 1)] * 2


@pytest.mark.fault("130a")
@in_all_formats
@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_row_130a_a_damaged_database_is_refused(program: str, keep: float) -> None:
    """Row 130a: cut, or with overwritten pages."""
    body = WRITERS[program]([Post(f"p{number}", number, FEED) for number in range(1, 300)])
    cut = body[: int(len(body) * keep)]
    noise = body[:4096] + b"\xa5" * (len(body) - 4096)
    for each in (cut, noise):
        error = refused(each)
        assert error.slug == "unsupported-format"
        assert "got an error: " in str(error)


ITEM = "guid, title, author, url, feedurl, pubDate, content, deleted"


@pytest.mark.fault("130a")
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("ALTER TABLE rss_item RENAME TO t; CREATE VIEW rss_item AS SELECT * FROM t;", "of one of newsboat"),
        (f"DROP TABLE rss_item; CREATE VIRTUAL TABLE rss_item USING fts4({ITEM});", "of one of newsboat"),
        (
            """ALTER TABLE rss_item DROP COLUMN content;
            ALTER TABLE rss_item ADD COLUMN content TEXT AS (hex(zeroblob(1000000)));""",
            "without rss_item.content",
        ),
        ("DROP TABLE rss_feed;", "of one of newsboat"),
    ],
    ids=["a view", "a virtual table", "a computed column", "no table"],
)
def test_row_130a_nothing_of_the_file_is_executed(script: str, why: str) -> None:
    """Row 130a: no view, no virtual table, no expression."""
    error = refused(changed(newsboat(POSTS), script))
    assert error.slug == "unsupported-format"
    assert why in str(error)


@pytest.mark.fault("130a")
def test_row_130a_time_is_bounded() -> None:
    """Row 130a: also where SQLite would scan a table once for each row of another."""
    count = 20_000
    rows = [
        (str(n), FEED, str(n), "t", "", "", "", "", "", "", "", "", 1.0, 1.0, 0, None) for n in range(count)
    ]
    body = a_database(NETNEWSWIRE, {"articles": rows})
    lookup = "CREATE TABLE authorsLookup (articleID TEXT, authorID TEXT);"
    lookup += "CREATE TABLE authors (authorID TEXT, name TEXT);"
    fill = f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count})"
    body = changed(body, f"{lookup} INSERT INTO authorsLookup {fill} SELECT 'x' || n, n FROM c;")
    started = time.monotonic()
    error = refused(body, ReadingLimits(1 << 30, 1_000_000, 0.3))
    assert time.monotonic() - started < 3
    assert error.slug == "too-costly"


@pytest.mark.fault("130a")
@pytest.mark.parametrize("limits", [LIMITS._replace(bytes=2000), LIMITS._replace(entries=5)], ids=str)
def test_row_130a_entries_and_text_are_bounded(limits: ReadingLimits) -> None:
    """Row 130a: rows of a hostile file may share their pages."""
    posts = [Post(f"p{number}", number, FEED) for number in range(1, 100)]
    assert refused(newsboat(posts), limits).slug == "limit"


@pytest.mark.fault("130a")
@pytest.mark.parametrize("is_of_feeds", [False, True], ids=["of one entry", "of feeds"])
def test_row_130a_rows_are_counted_one_by_one(is_of_feeds: bool) -> None:
    """Row 130a: also those beside an entry, and URLs of feeds, before any other is read."""
    row = (
        "'u' || n, 'http://x.test/' || hex(zeroblob(50000))"
        if is_of_feeds
        else "1, n, 'k', hex(zeroblob(50000))"
    )
    table = "subscription" if is_of_feeds else "metadata"
    body = changed(
        liferea(POSTS).replace(b"item_id, nr", b"nr, item_id"),
        f"""DELETE FROM metadata;
        INSERT INTO {table} WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 90)
        SELECT {row} FROM c;""",
    )
    tracemalloc.start()
    try:
        assert refused(body, LIMITS._replace(bytes=200_000)).slug == "limit"
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.fault("130a")
def test_row_130a_a_virtual_table_with_a_root_page_reads_nothing() -> None:
    """Row 130a: the module of one that passes for an ordinary table has no access to the file."""
    body = changed(
        newsboat(POSTS),
        f"""DROP TABLE rss_item; CREATE VIRTUAL TABLE rss_item USING fts5({ITEM});
        PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 2 WHERE name = 'rss_item';""",
    )
    error = refused(body)
    assert error.slug == "unsupported-format"
    assert "vtable constructor failed" in str(error)


@pytest.mark.fault("130a")
def test_row_130a_values_of_any_type_are_read() -> None:
    """Row 130a: SQLite's columns take any value; other types than text or date count as empty."""
    body = changed(
        newsboat(POSTS), "UPDATE rss_item SET guid = 1.5, title = x'ff', author = '', pubDate = 'x'"
    )
    match = read_database(body, [FEED], LIMITS)
    assert [(each.id, each.title, each.published_at) for each in match.entries] == [("1.5", "", None)] * 2


def test_another_program_s_database_is_refused() -> None:
    """I4: with the names of the supported readers."""
    error = refused(a_database("CREATE TABLE moz_places (url TEXT)", {}))
    assert "expected a database of one of newsboat, NetNewsWire, lemon24/reader, Liferea" in str(error)
