"""Texts of entries from the entries' own pages (T1 to T6), and the plan of fetching them.

ask(db, feed, now=now)                       # somebody asked for texts: the plan is due
for feed in list_due(db, now, limit=64): ...
put(db, feed, NewText(...), now=now)         # one page's text, or the reason that there is none
read_texts(db, feed, pages)                  # for an answer
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.texts.plain import LETTERS_BYTES
from wholefeed.store.base import Database, fetch_all, fetch_one, fetch_value, run, run_many, vary_by_engine
from wholefeed.store.rows import FEED_COLUMNS, FeedRow, TextRefusal, TextSummary, feed_row
from wholefeed.store.tables import feed_table
from wholefeed.store.tables.document_table import EncodedBody, encode_body

# The plan of a feed

WISH_SECONDS: Final = 30 * DAY_SECONDS
"""A feed's texts are fetched this long after a reader asked for them last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPlan:
    """Columns of `text_plan`; times are epoch seconds."""

    asked_at: float
    revision: int
    due_at: float | None
    begun_at: float
    fetched: int
    again_at: float | None
    learned: str


_PLAN: Final = """
    SELECT asked_at, revision, due_at, begun_at, fetched, again_at, learned FROM text_plan WHERE feed = :feed
"""


def find_plan(db: Database, feed: int) -> TextPlan | None:
    row = fetch_one(db, _PLAN, {"feed": feed})
    if row is None:
        return None
    asked_at, revision, due_at, begun_at, fetched, again_at, learned = row
    return TextPlan(
        asked_at=asked_at,
        revision=revision,
        due_at=due_at,
        begun_at=begun_at,
        fetched=fetched,
        again_at=again_at,
        learned=learned,
    )


_ASK: Final = """
    INSERT INTO text_plan (feed, asked_at, revision, due_at)
    SELECT id, :now, published_revision, :now FROM feed WHERE id = :feed
    ON CONFLICT (feed) DO UPDATE SET
        asked_at = :now,
        due_at = CASE
            WHEN text_plan.revision = excluded.revision THEN text_plan.due_at
            WHEN text_plan.due_at < :now THEN text_plan.due_at
            ELSE :now
        END,
        revision = excluded.revision
"""


def ask(db: Database, feed: int, now: float) -> None:
    """Note that a reader wants texts; a feed with changes since then is due."""
    run(db, _ASK, {"feed": feed, "now": now})


_ASK_AGAIN: Final = "UPDATE text_plan SET again_at = :now, due_at = :now WHERE feed = :feed"


def ask_again(db: Database, feed: int, now: float) -> None:
    """Have all pages of a feed fetched again, as far as texts are wanted (T2)."""
    ask(db, feed, now)
    run(db, _ASK_AGAIN, {"feed": feed, "now": now})


_FEED_COLUMNS: Final = ", ".join(f"f.{name}" for name in FEED_COLUMNS.split(", "))
_DUE: Final = vary_by_engine(
    f"""
    SELECT {FEED_COLUMNS} FROM (
        SELECT {_FEED_COLUMNS}, p.due_at,
            row_number() OVER (PARTITION BY {{host}} ORDER BY p.due_at, f.id) AS place
        FROM text_plan AS p JOIN feed AS f ON f.id = p.feed
        WHERE p.due_at <= :now AND p.asked_at >= :since AND f.is_walking = 0 AND f.digest IS NOT NULL
    ) AS due
    WHERE place = 1 ORDER BY due_at, id LIMIT :limit OFFSET :offset
    """,  # noqa: S608 - names of columns
    **feed_table.host_of("f.via_url"),
)


def list_due(db: Database, now: float, limit: int, offset: int = 0) -> list[FeedRow]:
    """Return feeds with due texts, those due longest first, one of each host."""
    since = now - WISH_SECONDS
    rows = fetch_all(db, _DUE, {"now": now, "since": since, "limit": limit, "offset": offset})
    return [feed_row(row) for row in rows]


_NEXT_DUE: Final = "SELECT min(due_at) FROM text_plan WHERE due_at > :now"


def next_due_at(db: Database, now: float) -> float | None:
    found = fetch_value(db, _NEXT_DUE, {"now": now})
    return None if found is None else float(found)


_BEGIN_DAY: Final = "UPDATE text_plan SET begun_at = :now, fetched = 0 WHERE feed = :feed"


def begin_day(db: Database, feed: int, now: float) -> None:
    run(db, _BEGIN_DAY, {"feed": feed, "now": now})


_COUNT_FETCH: Final = "UPDATE text_plan SET fetched = fetched + 1 WHERE feed = :feed"


def count_fetch(db: Database, feed: int) -> None:
    run(db, _COUNT_FETCH, {"feed": feed})


_KEEP_LEARNED: Final = "UPDATE text_plan SET learned = :learned WHERE feed = :feed"


def keep_learned(db: Database, feed: int, learned: str) -> None:
    run(db, _KEEP_LEARNED, {"feed": feed, "learned": learned})


_PUT_OFF: Final = """
    UPDATE text_plan SET due_at = :due_at WHERE feed = :feed AND revision = :revision
        AND coalesce(again_at, 0) = :again_at
"""


def put_off(db: Database, feed: int, plan: TextPlan, due_at: float | None) -> None:
    """Set when a feed is due next, unless somebody has asked for more since the plan was read."""
    values = {"due_at": due_at, "revision": plan.revision, "again_at": plan.again_at or 0.0}
    run(db, _PUT_OFF, {"feed": feed, **values})


# Texts


class StoredText(NamedTuple):
    """One page, without its text."""

    page: bytes
    url: str
    fetched_at: float
    updated_at: float | None
    why: str
    attempts: int
    length: int
    digest: bytes


class NewText(NamedTuple):
    page: bytes
    url: str
    updated_at: float | None
    """The entry's update that the page was fetched for."""
    why: str
    """Empty: there is a text."""
    attempts: int = 0
    way: str = ""
    html: str = ""
    length: int = 0
    digest: bytes = b""


_PAGES: Final = """
    SELECT page, url, fetched_at, updated_at, why, attempts, length, digest FROM page_text WHERE feed = :feed
"""


def list_pages(db: Database, feed: int) -> dict[bytes, StoredText]:
    found = {}
    for row in fetch_all(db, _PAGES, {"feed": feed}):
        page, url, fetched_at, updated_at, why, attempts, length, digest = row
        key = bytes(page)
        found[key] = StoredText(key, url, fetched_at, updated_at, why, attempts, length, bytes(digest))
    return found


_PUT: Final = """
    INSERT INTO page_text (feed, page, url, fetched_at, updated_at, why, attempts, way, length, digest)
    VALUES (:feed, :page, :url, :now, :updated_at, :why, :attempts, :way, :length, :digest)
    ON CONFLICT (feed, page) DO UPDATE SET
        url = excluded.url, fetched_at = excluded.fetched_at, updated_at = excluded.updated_at,
        why = excluded.why, attempts = excluded.attempts, way = excluded.way, length = excluded.length,
        digest = excluded.digest
"""
_PUT_BODY: Final = """
    INSERT INTO page_text_body (feed, page, length, coded) VALUES (:feed, :page, :length, :coded)
    ON CONFLICT (feed, page) DO UPDATE SET length = excluded.length, coded = excluded.coded
"""
_DELETE_BODY: Final = "DELETE FROM page_text_body WHERE feed = :feed AND page = :page"
_BEFORE: Final = "SELECT why, digest FROM page_text WHERE feed = :feed AND page = :page"
_ALIKE: Final = """
    SELECT page FROM page_text WHERE feed = :feed AND digest BETWEEN :first AND :last AND page <> :page
        AND (why = '' OR why = 'repeated')
"""
_SET_REPEATED: Final = "UPDATE page_text SET why = 'repeated' WHERE feed = :feed AND page = :page"
_BYTES: Final = """
    SELECT (SELECT coalesce(sum(length), 0) FROM page_text_body WHERE feed = :feed)
        + (SELECT coalesce(sum(body_bytes), 0) FROM document WHERE feed = :feed)
"""
REPEATED: Final = "repeated"
NO_ROOM: Final = "no-room"


def put(db: Database, feed: int, text: NewText, *, now: float, most_bytes: int) -> FeedRow:
    """Store the result of a page; return the feed's row, or raise `UnknownFeedError`.

    A text that another page has, too, is neither's (T3). One without room in `limits.feed_bytes` is not kept.
    A failure that may pass leaves the text that an earlier fetch gave.
    """
    before = fetch_one(db, _BEFORE, {"feed": feed, "page": text.page})
    had_text = before is not None and before["why"] == ""
    if text.attempts and had_text:
        return feed_table.require(db, feed)
    body = text.html.encode()
    if body and fetch_value(db, _BYTES, {"feed": feed}) + len(body) > most_bytes:
        text = text._replace(why=NO_ROOM, html="")
    alike = []
    if not text.why:
        alike = fetch_all(db, _ALIKE, {"feed": feed, "page": text.page, **_of_same_letters(text.digest)})
        text = text._replace(why=REPEATED) if alike else text
    values = {name: value for name, value in text._asdict().items() if name != "html"}
    run(db, _PUT, {"feed": feed, "now": now, **values})
    if text.why:
        run(db, _DELETE_BODY, {"feed": feed, "page": text.page})
    else:
        coded = encode_body(body)
        run(db, _PUT_BODY, {"feed": feed, "page": text.page, "length": len(body), "coded": coded})
    for row in alike:
        run(db, _SET_REPEATED, {"feed": feed, "page": row["page"]})
        run(db, _DELETE_BODY, {"feed": feed, "page": row["page"]})
    is_same = had_text and not text.why and before is not None and bytes(before["digest"]) == text.digest
    if is_same or not (had_text or alike or not text.why):
        return feed_table.require(db, feed)
    return _count(db, feed, now)


def _of_same_letters(digest: bytes) -> dict[str, bytes]:
    letters, rest = digest[:LETTERS_BYTES], len(digest) - LETTERS_BYTES
    return {"first": letters + b"\0" * rest, "last": letters + b"\xff" * rest}


_COUNT: Final = f"""
    UPDATE feed SET
        texts = (SELECT count(*) FROM page_text WHERE feed = :feed AND why = ''),
        texts_at = CASE WHEN texts_at + 1 > :now THEN texts_at + 1 ELSE :now END
    WHERE id = :feed RETURNING {FEED_COLUMNS}
"""  # noqa: S608 - names of columns


def _count(db: Database, feed: int, now: float) -> FeedRow:
    row = fetch_one(db, _COUNT, {"feed": feed, "now": now})
    if row is None:
        raise feed_table.unknown_feed_error(feed)
    return feed_row(row)


_DROP: Final = "DELETE FROM page_text WHERE feed = ? AND page = ?"
_DROP_BODIES: Final = "DELETE FROM page_text_body WHERE feed = ? AND page = ?"
_SET_WANTED: Final = "UPDATE feed SET texts_wanted = :wanted WHERE id = :feed"


def settle(db: Database, feed: int, *, wanted: int, dropped: Collection[bytes], now: float) -> FeedRow:
    """Store how many entries want a text, and delete those of pages that no entry has any more."""
    run(db, _SET_WANTED, {"feed": feed, "wanted": wanted})
    return drop_pages(db, feed, dropped, now=now) if dropped else feed_table.require(db, feed)


def drop_pages(db: Database, feed: int, pages: Iterable[bytes], *, now: float) -> FeedRow:
    keys = [(feed, page) for page in pages]
    run_many(db, _DROP, keys)
    run_many(db, _DROP_BODIES, keys)
    return _count(db, feed, now)


_DIGESTS: Final = "SELECT page, digest FROM page_text WHERE feed = :feed AND why = ''"


def read_digests(db: Database, feed: int) -> dict[bytes, bytes]:
    """Return the digests of the texts that a feed has, by page."""
    return {bytes(row[0]): bytes(row[1]) for row in fetch_all(db, _DIGESTS, {"feed": feed})}


class EncodedText(NamedTuple):
    url: str
    digest: bytes
    length: int
    """Letters and digits."""
    body: EncodedBody


_AT_ONCE: Final = 64
_TEXTS: Final = f"""
    SELECT t.page, t.url, t.digest, t.length, b.length, b.coded
    FROM page_text AS t JOIN page_text_body AS b ON b.feed = t.feed AND b.page = t.page
    WHERE t.feed = ? AND t.why = '' AND t.page IN ({", ".join("?" * _AT_ONCE)})
"""  # noqa: S608 - question marks


def read_texts(db: Database, feed: int, pages: Iterable[bytes]) -> dict[bytes, EncodedText]:
    """Return the stored texts of pages; the caller decodes them elsewhere."""
    wanted = list(dict.fromkeys(pages))
    found = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        padded = [*some, *[some[-1]] * (_AT_ONCE - len(some))]  # one statement is prepared
        for page, url, digest, length, size, coded in db.execute(_TEXTS, (feed, *padded)):
            found[bytes(page)] = EncodedText(url, bytes(digest), length, EncodedBody(bytes(coded), size))
    return found


# What is told

_REASONS: Final = """
    SELECT why, count(*) AS pages, min(url) AS url FROM page_text WHERE feed = :feed AND why <> ''
    GROUP BY why ORDER BY count(*) DESC, why
"""


def count_refusals(db: Database, feed: int) -> tuple[TextRefusal, ...]:
    return tuple(TextRefusal(row[0], row[1], row[2]) for row in fetch_all(db, _REASONS, {"feed": feed}))


def summarise(db: Database, feed: int) -> TextSummary | None:
    """Return the facts for `/status` on a feed's texts; None: nobody has asked for them."""
    plan = find_plan(db, feed)
    if plan is None:
        return None
    return TextSummary(plan.asked_at, plan.due_at, plan.learned, count_refusals(db, feed))
