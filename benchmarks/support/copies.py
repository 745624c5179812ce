"""Many feeds made directly in a PostgreSQL store, as copies of one that a server has walked.

    make_copies(url, own_base=".../f000000", bases=[".../f000001", ...], fresh_seconds=lambda place: 60.0)

Bodies, blocks and heads are taken apart, get the other feed's URL, and are put together again, so that each
feed answers with its own URLs. All URLs have one length: what is kept of lengths and places stays right.
"""

from __future__ import annotations

import hashlib
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from wholefeed.core.compose.segments import inflate, seal
from wholefeed.store.tables import document_table as documents_table

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_TABLES: Final = ("feed", "segment", "document", "block", "outline", "member", "body", "entry", "entry_key")
_AT_ONCE: Final = 2000
_NUMBERED: Final = ("feed", "segment", "document")

Row = dict[str, Any]
Template = dict[str, list[Row]]


def make_copies(
    url: str, *, own_base: str, bases: Sequence[str], fresh_seconds: Callable[[int], float]
) -> None:
    """Copy the one feed of a database once for each address.

    Args:
        url: Of the database.
        own_base: What the URLs of the feed that is there begin with; as long as each of the others.
        bases: The same of the feeds that are made.
        fresh_seconds: For how long the feed in this place is fresh yet.
    """
    import psycopg  # noqa: PLC0415 - an extra
    from psycopg.rows import dict_row  # noqa: PLC0415

    assert all(len(each) == len(own_base) for each in bases), "lengths are kept"
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as db:
        template = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in _TABLES}
        assert len(template["feed"]) == 1, "one feed to copy"
        for at in range(0, len(bases), _AT_ONCE):
            made = [
                _copied(template, own_base, base, at + place + 1, fresh_seconds(at + place))
                for place, base in enumerate(bases[at : at + _AT_ONCE])
            ]
            with db.transaction():
                for name in _TABLES:
                    _put(db, name, [row for copy in made for row in copy[name]])
        for name in _NUMBERED:
            db.execute(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name}")
        db.execute("VACUUM ANALYZE")


def _put(db: Any, name: str, rows: Sequence[Row]) -> None:
    if not rows:
        return
    columns = ", ".join(rows[0])
    with db.cursor() as cursor:
        kinds = [
            each.type_code for each in cursor.execute(f"SELECT {columns} FROM {name} LIMIT 0").description
        ]
        with cursor.copy(f"COPY {name} ({columns}) FROM STDIN (FORMAT BINARY)") as copying:
            copying.set_types(kinds)
            for row in rows:
                copying.write_row(list(row.values()))


def _copied(template: Template, old: str, new: str, number: int, fresh_seconds: float) -> Template:
    """Return the rows of a feed, with `number` as their distinction."""
    shifts = {name: number * len(template[name]) for name in _NUMBERED}
    made = {name: [_renumbered(name, row, shifts, old, new) for row in template[name]] for name in template}
    for row in made["feed"]:
        row["head"] = row["head"].replace(old.encode(), new.encode())
        row["digest"] = hashlib.blake2b(row["digest"] + new.encode(), digest_size=16).digest()
        row["fresh_until"] = time.time() + fresh_seconds
    documents = {row["id"]: row for row in made["document"]}
    for row in made["body"]:
        body = zstd.decompress(row["coded"]).replace(old.encode(), new.encode())
        row["coded"] = documents_table.encode_body(body)
        etag = f'"{zlib.crc32(body):08x}"'  # as the publisher makes it
        documents[row["document"]].update(digest=hashlib.sha256(body).digest(), etag=etag)
    segments = {row["id"]: row for row in made["segment"]}
    for row in made["block"]:
        segment = segments[row["segment"]]
        text = inflate(row["deflated"], segment["length"], segment["crc32"])
        sealed = seal(text.replace(old.encode(), new.encode()))
        row["deflated"] = sealed.block
        segment.update(
            crc32=sealed.crc32,
            crc_shift=sealed.crc_shift,
            digest=sealed.digest,
            deflated_bytes=len(sealed.block),
        )
    return made


def _renumbered(name: str, row: Row, shifts: dict[str, int], old: str, new: str) -> Row:
    made: Row = {
        column: value.replace(old, new) if isinstance(value, str) else value for column, value in row.items()
    }
    for table, shift in shifts.items():
        column = "id" if table == name else table
        if made.get(column) is not None:
            made[column] += shift
    return made
