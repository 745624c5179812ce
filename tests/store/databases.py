"""A SQLite database with rows in every table, odd texts among them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from wholefeed.store.sqlite_file import migrate_file

ODD = "\0 is NUL, \x7f DEL, \udc80 a lone surrogate, \x7f0000 what an escape looks like, é 文 😀"


def a_database(path: Path, *, feeds: int = 4, entries: int = 3) -> Path:
    """Make a database with this many feeds of one document, each with this many entries."""
    asyncio.run(migrate_file(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        for number in range(1, feeds + 1):
            _feed(db, number, entries)
        # the last feed was forgotten: its number is never given again
        db.execute("DELETE FROM feed WHERE id = ?", (feeds,))
        db.commit()
    return path


def _put(db: sqlite3.Connection, table: str, **values: Any) -> int:
    # A text comes as bytes: sqlite3 takes no lone surrogates.
    bound = [
        each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in values.values()
    ]
    marks = ["CAST(? AS TEXT)" if isinstance(each, str) else "?" for each in values.values()]
    cursor = db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(marks)})", bound)
    return cursor.lastrowid or 0


def _feed(db: sqlite3.Connection, number: int, entries: int) -> None:
    at = 1_763_770_000.123456 + number
    url = f"https://example.org/{number}/{ODD if number == 2 else ''}"
    feed = _put(
        db, "feed", url=url, fetch_url=url, family="atom", kind="archived", state="complete",
        first_seen_at=at, asked_at=at, checked_at=at, modified_at=at, revision=number,
        family_since=at if number == 2 else None, failed_at=at if number == 1 else None,
        cache_control="private, max-age=60", expires=f"Thu, {ODD}",
        notes='[{"a": "\\ud800"}]',
        digest=bytes(range(16)), head=b"\0\xff" * number, context=None,
        title=None if number == 1 else ODD, lines_begun=number, site=f"https://example.org/{number}/",
    )  # fmt: skip
    _put(db, "alias", url=f"{url}?alias", feed=feed)
    segment = _put(
        db, "segment", feed=feed, position=1, length=number, crc32=2**32 - 1, crc_shift=2**31,
        deflated_bytes=3, digest=b"d" * 16, prefixes=0, newest_at=at, oldest_at=at, entries=entries,
        parser_version=1,
    )  # fmt: skip
    _put(db, "block", segment=segment, deflated=b"abc" * 1000 * number)
    _put(db, "block_rest", segment=segment, number=1, deflated=b"rest" * number)
    _put(db, "outline", segment=segment, packed=b"\0\1\2")
    _put(db, "member", segment=segment, packed=b"\0\1\2\3")
    _put(db, "lined", segment=segment, packed=b"\1\0\0\0")
    document = _put(
        db, "document", feed=feed, url=url, final_url=url, role="subscription", rank=1, family="atom",
        site_id=ODD, links="{}", is_marked=0, is_settled=1, is_uncacheable=0, brought_news=1,
        digest=b"e" * 16, media_type="application/atom+xml", fetched_at=at, checked_at=at,
        parser_version=1, body_bytes=2**33, entries=entries, segment=segment, is_dirty=0, live_bytes=7,
        origin="memento",
    )  # fmt: skip
    _put(db, "body", document=document, length=5, coded=bytes(number) * 100)
    for ordinal in range(entries):
        identity = number.to_bytes(8) + ordinal.to_bytes(8)
        _put(
            db, "entry", document=document, ordinal=ordinal, feed=feed, identity=identity, size=100,
            updated_at=at, order_at=None, is_live=1, fullness=(None, 0, 1, 2)[ordinal % 4],
            made_at=at + ordinal, own=b"o" * 16 if ordinal else None,
        )  # fmt: skip
        _put(
            db, "line", feed=feed, number=ordinal + 1, identity=identity, arrived_at=2**33, sorted_at=at,
            is_dated=ordinal % 2,
        )  # fmt: skip
        _put(db, "entry_key", document=document, ordinal=ordinal, feed=feed, content=identity)
    _put(db, "tombstone", feed=feed, identity=b"t" * 16, document=document, when_at=at, ref=ODD)
    _put(db, "settled", feed=feed, identity=b"s" * 16, is_withdrawn=number % 2, is_doubtful=1 - number % 2)
    _put(db, "trait", feed=feed, key=-(2**63) + number, identity=b"i" * 16)
    _put(db, "other_id", feed=feed, own=b"o" * 16, identity=b"i" * 16, since=at, is_usual=1)
    _put(db, "text_plan", feed=feed, asked_at=at, revision=number, due_at=at, again_at=None, learned="{}")
    _put(
        db, "page_text", feed=feed, page=b"p" * 16, url=f"{url}/1", fetched_at=at, updated_at=None, why="",
        attempts=0, way="learned", length=3, digest=b"d" * 16,
    )  # fmt: skip
    _put(db, "page_text_body", feed=feed, page=b"p" * 16, length=3, coded=b"\0\xff" * number)
    _put(db, "ambiguous_key", feed=feed, key=b"k" * 16)
    _put(
        db,
        "attempt",
        feed=feed,
        url=f"{url}/1",
        reason="gone",
        attempts=1,
        first_at=at,
        last_at=at,
        next_at=at,
    )
    intake = f"intake {number}"
    _put(
        db, "intake", id=intake, began_at=at, digest=b"i" * 16, options="{}", left_out=number, unchanged="[]"
    )
    _put(db, "intake_list", intake=intake, length=5, coded=b"\0\xff" * number)
    _put(
        db, "intake_feed", intake=intake, place=1, url=url, title=ODD, line=2**31 - 1, stage="here",
        due_at=None, tries=1, feed=feed, is_counted=1, entries_before=10, ended_at=at, reason="", status=None,
    )  # fmt: skip
    _put(
        db, "intake_feed", intake=intake, place=2, url=f"{url}/2", title="", line=2, stage="waiting",
        due_at=at, tries=0, feed=None, is_counted=0, entries_before=0, ended_at=None, reason=ODD, status=404,
    )  # fmt: skip
    _put(db, "memento_search", feed=feed, url="", position=ODD, next_at=at)
