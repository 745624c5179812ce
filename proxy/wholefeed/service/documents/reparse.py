"""Read the stored bodies again when the parser has learnt something (docs/design.md#the-store).

No second fetch: the body is the source of truth. The old segments serve until the new ones are published.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final

from wholefeed.core.compose.remember import CopyDates
from wholefeed.core.jobs.reading import read_again
from wholefeed.core.parse.errors import ParseError
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.reading_notes import BadLink, ExtraLink
from wholefeed.core.terms import Role
from wholefeed.errors import WorkError
from wholefeed.loggers import get_logger
from wholefeed.service.documents.shapes import stored_as
from wholefeed.service.documents.work import Work, coded, work_bytes
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, NewDocument, NoteDict
from wholefeed.store.store import Store
from wholefeed.store.tables import bodies
from wholefeed.store.tables.documents import copy_dates, put_again

log = get_logger()

_BATCH: Final = 16
_ON_LINKS: Final = frozenset({BadLink.__name__, ExtraLink.__name__})


async def reparse(
    store: Store,
    write: Callable[[Callable[[Database], object]], Awaitable[object]],
    work: Work,
    feed_id: int,
    rows: list[DocumentRow],
    now: float,
) -> bool:
    """Put the documents again that an older parser has read; return whether there were any.

    One that the present parser cannot read stays as it is. `write` changes what is stored of the feed.
    """
    outdated = [row for row in rows if row.parser_version != PARSER_VERSION]
    for start in range(0, len(outdated), _BATCH):
        documents = [await _read_again(store, work, row) for row in outdated[start : start + _BATCH]]
        new = await coded([each for each in documents if each is not None])
        await write(partial(put_again, feed=feed_id, documents=new, now=now))
    return bool(outdated)


async def _read_again(store: Store, work: Work, row: DocumentRow) -> NewDocument | None:
    def look(db: Database) -> tuple[bytes, tuple[CopyDates, ...]]:
        return bodies.read(db, row.id), copy_dates(db, row.id) if row.role is Role.MEMORY else ()

    body, dates = await store.read(look)
    try:
        facts = await work.run(work_bytes(body), read_again, stored_as(row, body), dates)
    except (ParseError, WorkError) as exc:
        log.warning("document.unreadable", feed=row.feed, document=row.id, slug=exc.slug)
        return None
    return replace(
        NewDocument.of(row, body, facts.entries),
        family=facts.family,
        version=facts.version,
        site_id=facts.site_id,
        updated_at=facts.updated_at,
        parser_version=PARSER_VERSION,
        tombstones=() if row.memento else facts.tombstones,  # R33
        keys=facts.keys,
        ambiguous=facts.ambiguous,
        notes=[replace(note, url=row.url).as_dict() for note in facts.notes] + _link_notes(row),
    )


def _link_notes(row: DocumentRow) -> list[NoteDict]:
    """What was remarked on its links, which are kept as they were read."""
    return [note for note in row.notes if note["code"] in _ON_LINKS]
