"""Posts with more than one id (rule R36): how they are recognised, and the id of each in answers.

`entry.identity` is that of the post; `entry.own` is the copy's own identity where it differs.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from wholefeed.core.compose import same_posts
from wholefeed.core.merge import FORGOTTEN_REF
from wholefeed.core.model import EntryId, Traits
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.store.base import Database, Row, build_insert, fetch_all, fetch_one, fetch_value, run, run_many
from wholefeed.store.tables.live import D_HOLDS, DocumentsChange


class KnownIds(NamedTuple):
    known: frozenset[EntryId]
    """Ids of stored entries, or seen for a post."""
    posts: Mapping[EntryId, EntryId]
    """Identities of posts with several ids, by id."""
    has_renamed: bool


_FEW: Final = 16
_MANY: Final = 256


def _asking(sql: str, number: int) -> str:
    return sql.format(", ".join("?" * number))


_FIND: Final = """
    SELECT DISTINCT identity AS own, CAST(NULL AS bytea) AS identity FROM entry
    WHERE feed = ? AND identity IN ({0})
    UNION ALL
    SELECT own, identity FROM other_id WHERE feed = ? AND own IN ({0})
    UNION ALL
    SELECT NULL, NULL FROM feed WHERE id = ? AND renamed > 0
"""
_FIND_FEW: Final = _asking(_FIND, _FEW)
_FIND_MANY: Final = _asking(_FIND, _MANY)


def find(db: Database, feed: int, ids: Sequence[EntryId]) -> KnownIds:
    known, posts, has_renamed = set[EntryId](), dict[EntryId, EntryId](), False
    for asked in _parts(ids):
        sql = _FIND_FEW if len(asked) == _FEW else _FIND_MANY
        for own, identity in db.execute(sql, (feed, *asked, feed, *asked, feed)):
            if own is None:
                has_renamed = True
                continue
            known.add(EntryId(own))
            if identity is not None:
                posts[EntryId(own)] = EntryId(identity)
    return KnownIds(frozenset(known), posts, has_renamed)


_SERVED: Final = """
    SELECT e.identity FROM entry AS e
    WHERE e.feed = :feed AND e.is_live = 1 AND e.identity = coalesce(
        (SELECT o.identity FROM other_id AS o WHERE o.feed = :feed AND o.own = :own), :own
    )
    LIMIT 1
"""


def find_served(db: Database, feed: int, own: EntryId) -> EntryId | None:
    identity = fetch_value(db, _SERVED, {"feed": feed, "own": own})
    return None if identity is None else EntryId(identity)


def _parts(ids: Iterable[EntryId]) -> Iterator[Sequence[EntryId]]:
    wanted = list(dict.fromkeys(ids))
    size = _FEW if len(wanted) <= _FEW else _MANY
    for start in range(0, len(wanted), size):
        asked = wanted[start : start + size]
        yield [*asked, *[asked[-1]] * (size - len(asked))]  # two sizes, so that few statements are prepared


# Traits shared by new and known entries

# A new post is not matched with an entry deleted by its publisher (R19), but with one removed by people (I2).
_OWNERS: Final = f"""
    SELECT t.key, t.identity FROM trait AS t
    WHERE t.feed = :feed AND t.key IN (SELECT value FROM json_each(:keys))
        AND EXISTS (SELECT 1 FROM entry AS e WHERE e.feed = :feed AND e.identity = t.identity)
        AND NOT EXISTS (
            SELECT 1 FROM tombstone AS d
            WHERE d.feed = :feed AND d.identity = t.identity AND d.ref <> '{FORGOTTEN_REF}'
        )
    LIMIT :most
"""  # noqa: S608 - a constant
_MOST_OWNERS: Final = 4


def find_owners(db: Database, feed: int, traits: Iterable[Traits]) -> dict[int, set[EntryId]]:
    """Return the identities with each trait, or nothing if traits have over `_MOST_OWNERS` on average."""
    keys = {key for each in traits for key in (*each.ids, *each.links, *each.titles)}
    most = _MOST_OWNERS * len(keys)
    rows = (
        fetch_all(db, _OWNERS, {"feed": feed, "keys": json.dumps([*keys]), "most": most + 1}) if keys else []
    )
    owners = defaultdict[int, set[EntryId]](set)
    for key, identity in rows if len(rows) <= most else ():
        owners[key].add(EntryId(identity))
    return owners


_MOST_ROWS: Final = 256


def put_traits(db: Database, feed: int, found: Iterable[tuple[EntryId, Traits]]) -> None:
    """Store the traits of entries."""
    # A trait shared within a document distinguishes nothing, and two owners of it are enough to show that.
    times = Counter[int]()
    rows = list[tuple[int, int, EntryId]]()
    for identity, traits in found:
        for key in {*traits.ids, *traits.links, *traits.titles}:
            times[key] += 1
            if times[key] <= 2:  # noqa: PLR2004 - as many as show that it is not one's own
                rows.append((feed, key, identity))
    start = 0
    while left := len(rows) - start:
        taken = left if left <= _FEW else min(_MOST_ROWS, 1 << (left.bit_length() - 1))
        sql = build_insert("trait", "feed, key, identity", taken) + " ON CONFLICT DO NOTHING"
        run(db, sql, list(chain.from_iterable(rows[start : start + taken])))
        start += taken


_PURGE: Final = """
    DELETE FROM trait WHERE feed = :feed AND NOT EXISTS (
        SELECT 1 FROM entry AS e WHERE e.feed = :feed AND e.identity = trait.identity
    )
"""


def purge(db: Database, feed: int) -> None:
    run(db, _PURGE, {"feed": feed})


# New documents


def settle(
    db: Database,
    change: DocumentsChange,
    feed: int,
    ids: Sequence[EntryId],
    pairs: Mapping[EntryId, EntryId],
    *,
    is_memory: bool = False,
) -> dict[EntryId, EntryId]:
    """Return by own id the identities of a document's entries, where they differ.

    Two ids in one document are two posts, and become separate everywhere, unless `is_memory`. `pairs` has the
    identities of entries that are new to the feed and known under another id.
    """
    posts = dict(pairs)
    if change.has_renamed:
        posts |= find(db, feed, ids).posts
    if not posts:
        return {}
    if is_memory:
        return {each: posts[each] for each in ids if posts.get(each, each) != each}
    names, parted = same_posts.resolve_names(ids, posts)
    for each in parted:
        if each not in pairs:
            _part(db, change, feed, each)
    return names


_DROP_ID: Final = "DELETE FROM other_id WHERE feed = :feed AND own = :own"
_COPIES_OF_ID: Final = "SELECT DISTINCT document FROM entry WHERE feed = :feed AND own = :own"
# In attached documents they count as live until the end of the change, like entries of a new document.
_NAME_BY_ITSELF: Final = """
    UPDATE entry SET identity = own, own = NULL, is_live = CASE WHEN is_live >= 0 THEN 1 END
    WHERE feed = :feed AND own = :own
"""


def _part(db: Database, change: DocumentsChange, feed: int, own: EntryId) -> None:
    of = {"feed": feed, "own": own}
    run(db, _DROP_ID, of)
    _rename(db, change, _COPIES_OF_ID, _NAME_BY_ITSELF, of)


def _rename(
    db: Database, change: DocumentsChange, where: str, sql: str, parameters: Mapping[str, object]
) -> None:
    documents = [row["document"] for row in fetch_all(db, where, parameters)]
    for document in documents:
        change.concern(document)
    run(db, sql, parameters)
    for document in documents:
        change.concern(document)
    change.mark(documents)


_SET_OWN: Final = "UPDATE entry SET own = ? WHERE document = ? AND ordinal = ?"
_PUT_ID: Final = """
    INSERT INTO other_id (feed, own, identity, since, is_usual) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""


def put(
    db: Database,
    change: DocumentsChange,
    feed: int,
    document: int,
    own: Mapping[int, EntryId],
    pairs: Mapping[EntryId, EntryId],
    *,
    now: float,
    is_used: bool,
) -> None:
    """Store the own identities of a document's entries by ordinal, and the new ids of posts.

    `is_used`: the publisher uses the new ids at this moment.
    """
    run_many(db, _SET_OWN, [(each, document, ordinal) for ordinal, each in own.items()])
    if pairs:
        none: float | None = None
        rows = [(feed, identity, identity, none, 1) for identity in pairs.values()]
        rows += [(feed, each, identity, now if is_used else none, 0) for each, identity in pairs.items()]
        run_many(db, _PUT_ID, rows)
        change.has_renamed = True
        _count(db, feed, now, looks=change.renaming_looks)


# The id of a post in answers

_IDS_OF_POSTS: Final = """
    SELECT own, identity, since, is_usual FROM other_id WHERE feed = ? AND identity IN ({0})
"""
_IDS_OF_FEW: Final = _asking(_IDS_OF_POSTS, _FEW)
_IDS_OF_MANY: Final = _asking(_IDS_OF_POSTS, _MANY)
_SET_SINCE: Final = "UPDATE other_id SET since = ? WHERE feed = ? AND own = ?"
_DROP_IDS: Final = "DELETE FROM other_id WHERE feed = ? AND own = ?"
_DUE: Final = """
    SELECT own, identity FROM other_id WHERE feed = :feed AND is_usual = 0 AND since <= :before
"""
_SET_USUAL: Final = (
    "UPDATE other_id SET is_usual = CASE WHEN own = ? THEN 1 ELSE 0 END WHERE feed = ? AND identity = ?"
)
# Ids of one post. Beyond this, ids missing at the last look are deleted.
_MOST_IDS: Final = 8
UNSTABLE_LOOKS: Final = 3
"""Successive looks with new ids for most posts that raise the note `IdsUnstable`."""
_COUNT_RENAMED: Final = """
    UPDATE feed SET
        renamed = (SELECT count(DISTINCT identity) FROM other_id WHERE feed = :feed AND own <> identity),
        renamed_since = coalesce(renamed_since, :now),
        renaming_at = (SELECT min(since) + :day FROM other_id WHERE feed = :feed AND is_usual = 0),
        renaming_looks = :looks
    WHERE id = :feed
"""


def look(
    db: Database,
    change: DocumentsChange,
    feed: int,
    own: Collection[EntryId],
    names: Mapping[EntryId, EntryId],
    pairs: Mapping[EntryId, EntryId],
    *,
    known: int,
    now: float,
) -> None:
    """Record which ids the subscription document uses, and adopt those in long use.

    `names` has the identities of entries where they differ from `own`, `pairs` the new ones among them.
    `known` is the number of entries that the feed had.
    """
    used = set(own)
    rows = defaultdict[EntryId, list[Row]](list)
    for row in _ids_of(db, feed, (names.get(each, each) for each in used)):
        rows[EntryId(row["identity"])].append(row)
    changed, dropped = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for ids in rows.values():
        idle = [row for row in ids if row["own"] not in used]
        changed += [(None, feed, row["own"]) for row in idle if row["since"] is not None]
        changed += [(now, feed, row["own"]) for row in ids if row["since"] is None and row["own"] in used]
        dropped += [(feed, row["own"]) for row in idle if not row["is_usual"]][: max(0, len(ids) - _MOST_IDS)]
    run_many(db, _SET_SINCE, changed)
    run_many(db, _DROP_IDS, dropped)
    let_stand(db, change, feed, now)
    is_renaming = bool(pairs) and 2 * len(pairs) >= known
    _count(db, feed, now, looks=change.renaming_looks + 1 if is_renaming else 0)


def _count(db: Database, feed: int, now: float, *, looks: int) -> None:
    run(db, _COUNT_RENAMED, {"feed": feed, "now": now, "day": DAY_SECONDS, "looks": looks})


def let_stand(db: Database, change: DocumentsChange, feed: int, now: float) -> None:
    """Adopt for each post the id that its publisher used at every look for a day."""
    due = fetch_all(db, _DUE, {"feed": feed, "before": now - DAY_SECONDS})
    run_many(db, _SET_USUAL, [(row["own"], feed, row["identity"]) for row in due])
    change.concern_fully(EntryId(row["identity"]) for row in due)


def find_usual(db: Database, feed: int, identities: Collection[EntryId]) -> dict[EntryId, EntryId]:
    """Return the id in answers of each post with several."""
    rows = _ids_of(db, feed, identities)
    return {EntryId(row["identity"]): EntryId(row["own"]) for row in rows if row["is_usual"]}


def _ids_of(db: Database, feed: int, identities: Iterable[EntryId]) -> Iterator[Row]:
    for asked in _parts(identities):
        yield from fetch_all(db, _IDS_OF_FEW if len(asked) == _FEW else _IDS_OF_MANY, (feed, *asked))


class OwnId(NamedTuple):
    id: EntryId
    is_live: bool


_OWN_OF_DOCUMENT: Final = """
    SELECT identity, coalesce(own, identity) AS own, coalesce(is_live, 0) AS is_live FROM entry
    WHERE document = :document ORDER BY is_live
"""


def own_ids(db: Database, document: int) -> dict[EntryId, OwnId]:
    rows = fetch_all(db, _OWN_OF_DOCUMENT, {"document": document})
    return {EntryId(row["identity"]): OwnId(EntryId(row["own"]), bool(row["is_live"])) for row in rows}


# Work that is due without a new document

# One row for each identity that shares a trait, since pairs could be millions.
SHARED: Final = """
    SELECT t.key, t.identity FROM trait AS t
    WHERE t.feed = :feed
        AND t.key IN (SELECT key FROM trait WHERE feed = :feed GROUP BY key HAVING count(*) > 1)
        AND EXISTS (SELECT 1 FROM entry AS e WHERE e.feed = :feed AND e.identity = t.identity)
        AND NOT EXISTS (SELECT 1 FROM tombstone AS d WHERE d.feed = :feed AND d.identity = t.identity)
    ORDER BY t.key
"""
_TOGETHER: Final = f"""
    SELECT 1 FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
    WHERE e.feed = :feed AND e.identity = :one AND {D_HOLDS} AND EXISTS (
        SELECT 1 FROM entry AS other WHERE other.document = d.id AND other.identity = :other
    )
    LIMIT 1
"""  # noqa: S608 - a constant


def find_doubled(db: Database, feed: int) -> list[tuple[EntryId, EntryId]]:
    """Return pairs of duplicate posts that arose before their traits were stored."""

    def are_together(one: EntryId, other: EntryId) -> bool:
        return bool(fetch_all(db, _TOGETHER, {"feed": feed, "one": one, "other": other}))

    rows = fetch_all(db, SHARED, {"feed": feed})
    return same_posts.find_doubled(((key, EntryId(identity)) for key, identity in rows), are_together)


def is_due(db: Database, feed: int, now: float, *, joins: bool) -> bool:
    is_used = fetch_one(db, _DUE, {"feed": feed, "before": now - DAY_SECONDS}) is not None
    return is_used or (joins and bool(find_doubled(db, feed)))


def settle_due(db: Database, feed: int, now: float, *, joins: bool) -> None:
    """Adopt ids in use for a day; with `joins`, also join duplicate posts."""
    change = DocumentsChange.begin(db, feed)
    for one, other in find_doubled(db, feed) if joins else ():
        _join(db, change, feed, one, other, now)
    let_stand(db, change, feed, now)
    _count(db, feed, now, looks=change.renaming_looks)
    change.finish()


_IS_IN_USE: Final = """
    SELECT 1 FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
    WHERE e.feed = :feed AND e.identity = :identity AND e.is_live >= 0 AND d.role = 'subscription' LIMIT 1
"""
_COPIES_OF_POST: Final = "SELECT DISTINCT document FROM entry WHERE feed = :feed AND identity = :other"
_NAME_BY_POST: Final = """
    UPDATE entry SET own = coalesce(own, identity), identity = :identity,
        is_live = CASE WHEN is_live >= 0 THEN 1 END
    WHERE feed = :feed AND identity = :other
"""
_SHARE_IDS: Final = (
    "UPDATE other_id SET identity = :identity, is_usual = 0 WHERE feed = :feed AND identity = :other"
)


def _join(db: Database, change: DocumentsChange, feed: int, one: EntryId, other: EntryId, now: float) -> None:
    # `other` becomes the id in answers: the one in the subscription document, if that has either.
    if fetch_all(db, _IS_IN_USE, {"feed": feed, "identity": one}):
        one, other = other, one
    of = {"feed": feed, "identity": one, "other": other}
    run(db, _SHARE_IDS, of)
    run_many(db, _PUT_ID, [(feed, one, one, None, 0), (feed, other, one, now, 1)])
    run_many(db, _SET_USUAL, [(other, feed, one)])
    change.has_renamed = True
    _rename(db, change, _COPIES_OF_POST, _NAME_BY_POST, of)
