"""The choice of live copies, kept up to date while documents come, go and change places (R8 to R10, R19).

An entry's `is_live` is 1 for the copy in answers, 0 for a copy that lost, and NULL in a detached document.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Final, Self

from wholefeed.core.merge import (
    FALLEN_OUT,
    FORGOTTEN,
    FORGOTTEN_REF,
    Burial,
    ComparedEntry,
    Copy,
    Fullness,
    Rank,
    choose,
    forgotten_at,
    place_of,
    rank_copy,
    rank_of,
)
from wholefeed.core.model import EntryId, Role, Tombstone
from wholefeed.core.origins import POLICIES, find_origins
from wholefeed.store.base import (
    Database,
    Row,
    ask,
    either,
    fetch_all,
    fetch_one,
    fetch_value,
    json_ids,
    run,
    run_counting,
    run_many,
    vary_by_engine,
)
from wholefeed.store.rows import match_origins, member
from wholefeed.store.tables.feed_table import unknown_feed_error

# Tables and queries of a change


TEMPORARY_TABLES: Final = vary_by_engine(
    """
    CREATE TEMP TABLE concerned (identity {bytes} NOT NULL PRIMARY KEY, is_full {small} NOT NULL) {packed};
    CREATE TEMP TABLE changed (document {number} NOT NULL PRIMARY KEY) {strict};
    CREATE TEMP TABLE contested (
        identity {bytes} NOT NULL PRIMARY KEY, is_full {small} NOT NULL, is_gone {small} NOT NULL
    ) {packed};
    CREATE TEMP TABLE decided (
        document {number} NOT NULL, ordinal INTEGER NOT NULL, is_live {small} NOT NULL,
        PRIMARY KEY (document, ordinal)
    ) {packed};
    {end}
    """,
    bytes=("BLOB", "bytea"),
    number=("INTEGER", "bigint"),
    small=("INTEGER", "smallint"),
    packed=("STRICT, WITHOUT ROWID", ""),
    strict=("STRICT", ""),
    # PostgreSQL expects thousands of rows in a table without statistics, and scans it. ON COMMIT DELETE ROWS
    # would truncate the files at each COMMIT and make new plans, which took 8 of the 27 ms of a document.
    end=("", "ANALYZE concerned, changed, contested, decided;"),
)
_SETTLING: Final = find_origins(lambda policy: policy.settles)
_SETTLES: Final = match_origins(_SETTLING)
_D_SETTLES: Final = match_origins(_SETTLING, "d.origin")
D_HOLDS: Final = match_origins(find_origins(lambda policy: policy.holds), "d.origin")
"""The condition that a document d contains its entries itself, and does not only remember them."""
_STANDINGS: Final = " ".join(f"WHEN '{each}' THEN {policy.standing:d}" for each, policy in POLICIES.items())
_STANDING: Final = f"CASE d.origin {_STANDINGS} END"
_SUBSCRIPTION_UPDATED_AT: Final = """
    SELECT updated_at FROM document
    WHERE feed = :feed AND role = 'subscription' AND rank IS NOT NULL
    ORDER BY rank, id LIMIT 1
"""
_BEFORE: Final = f"""
    SELECT ({_SUBSCRIPTION_UPDATED_AT}), EXISTS (SELECT 1 FROM tombstone WHERE feed = :feed),
        EXISTS (SELECT 1 FROM settled WHERE feed = :feed), renamed > 0, renaming_looks
    FROM feed WHERE id = :feed
"""  # noqa: S608 - a constant
_CONCERN: Final = """
    INSERT INTO concerned SELECT DISTINCT identity, 0 FROM entry WHERE document = :document
    ON CONFLICT DO NOTHING
"""
_CONCERN_BURIED: Final = """
    INSERT INTO concerned SELECT DISTINCT identity, 1 FROM tombstone WHERE document = :document
    ON CONFLICT (identity) DO UPDATE SET is_full = 1
"""
# Most documents of a walk share no entry with another one, and need no choice.
_WITH_COPIES: Final = """
    SELECT d.id FROM document AS d
    WHERE d.id IN (SELECT value FROM json_each(:documents)) AND EXISTS (
        SELECT 1 FROM entry AS own WHERE own.document = d.id AND EXISTS (
            SELECT 1 FROM entry AS e
            WHERE e.feed = :feed AND e.identity = own.identity AND e.is_live >= 0
                AND (e.document <> own.document OR e.ordinal <> own.ordinal)
        )
    )
"""
_CONCERN_MOVED: Final = """
    INSERT INTO concerned
    SELECT DISTINCT identity, 1 FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live = 0
    ON CONFLICT (identity) DO UPDATE SET is_full = 1
"""
# Rule R20: the order of two documents also decides in which one an entry comes first.
_CHANGE_MOVED: Final = """
    INSERT INTO changed
    SELECT DISTINCT document FROM entry
    WHERE document IN (SELECT value FROM json_each(:documents)) AND is_live = 0
    ON CONFLICT DO NOTHING
"""
# An undated copy is deleted by a tombstone in its own or a newer document: the order of documents counts.
_CONCERN_ALL_BURIED: Final = """
    INSERT INTO concerned SELECT DISTINCT identity, 1 FROM tombstone WHERE feed = :feed
    ON CONFLICT (identity) DO UPDATE SET is_full = 1
"""
_MARK: Final = """
    INSERT INTO changed SELECT id FROM document WHERE id IN (SELECT value FROM json_each(:documents))
    ON CONFLICT DO NOTHING
"""
# Copies that lost show the contested identities: without a loser there was nothing to compare.
_CONCERN_CLAMPED: Final = """
    INSERT INTO concerned
    SELECT DISTINCT loser.identity, 1
    FROM document AS place
    CROSS JOIN entry AS loser ON loser.document = place.id AND loser.is_live = 0
    WHERE place.feed = :feed AND EXISTS (
        SELECT 1 FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
        WHERE e.feed = :feed AND e.identity = loser.identity AND e.is_live >= 0
            AND d.role IN ('archive', 'page') AND d.generated_at IS NULL AND d.updated_at > :instant
    )
    ON CONFLICT (identity) DO UPDATE SET is_full = 1
"""
# Rule R8: a mark says that the publisher removed the identity from its chain, and no document of the
# publisher has had it since. Documents from other sources set no mark (R33).
_WITHDRAW: Final = f"""
    INSERT INTO settled (feed, identity, link, enclosure, content, enclosures, is_withdrawn, is_doubtful)
    SELECT e.feed, e.identity, k.link, k.enclosure, k.content, k.enclosures, 1, :is_doubtful
    FROM entry AS e LEFT JOIN entry_key AS k ON k.document = e.document AND k.ordinal = e.ordinal
    WHERE e.document = :document AND EXISTS (
        SELECT 1 FROM document WHERE id = :document AND {_SETTLES}
    ) AND NOT EXISTS (
        SELECT 1 FROM entry AS other CROSS JOIN document AS d ON d.id = other.document
        WHERE other.feed = e.feed AND other.identity = e.identity AND other.is_live >= 0
            AND other.document <> e.document AND {_D_SETTLES}
    )
    ON CONFLICT DO NOTHING
"""  # noqa: S608 - constants
_HOLD: Final = f"""
    DELETE FROM settled WHERE feed = :feed AND identity IN (
        SELECT e.identity FROM document AS d CROSS JOIN entry AS e ON e.document = d.id
        WHERE d.id IN (SELECT value FROM json_each(:documents)) AND {_D_SETTLES}
    )
"""  # noqa: S608 - constants
# Rule R35: an entry moved to another archive is there, in its current version.
_IN_ARCHIVES: Final = f"""
    SELECT e.identity, max(coalesce(e.fullness, 1)) AS fullness
    FROM document AS d CROSS JOIN entry AS e ON e.document = d.id
    WHERE d.id IN (SELECT value FROM json_each(:documents)) AND d.role = 'archive' AND {_D_SETTLES}
    GROUP BY e.identity
"""  # noqa: S608 - constants
_GIVE_WAY: Final = """
    UPDATE entry SET fullness = 0 WHERE feed = ? AND identity = ? AND coalesce(fullness, 1) <= ?
        AND document IN (SELECT id FROM document WHERE feed = ? AND role = 'memory')
"""
_CONCERN_DOUBTFUL: Final = """
    INSERT INTO concerned SELECT identity, 1 FROM settled WHERE feed = :feed AND is_doubtful = 1
    ON CONFLICT (identity) DO UPDATE SET is_full = 1
"""
_SETTLE_DOUBTFUL: Final = "UPDATE settled SET is_doubtful = 0 WHERE feed = :feed AND is_doubtful = 1"
_HAS_ARCHIVE: Final = f"""
    CASE WHEN EXISTS (
        SELECT 1 FROM document WHERE feed = :feed AND role = 'archive' AND rank IS NOT NULL AND {_SETTLES}
    ) THEN 1 ELSE 0 END
"""  # noqa: S608 - constants
_DOUBT: Final = """
    UPDATE entry SET fullness = 0 WHERE feed = ? AND identity = ?
        AND document IN (SELECT id FROM document WHERE feed = ? AND role = 'memory')
"""
_CONCERN_FULLY: Final = """
    INSERT INTO concerned VALUES (?, 1) ON CONFLICT (identity) DO UPDATE SET is_full = 1
"""
# The first archive that comes, and the last one that leaves, change whether marks of unknown cause count.
_CONCERN_UNKNOWN: Final = f"""
    INSERT INTO concerned
    SELECT s.identity, 1 FROM settled AS s
    WHERE s.feed = :feed AND s.is_withdrawn = 0 AND {_HAS_ARCHIVE} = (
        SELECT max(e.is_live) FROM entry AS e WHERE e.feed = :feed AND e.identity = s.identity
    )
    ON CONFLICT (identity) DO UPDATE SET is_full = 1
"""  # noqa: S608 - a constant
# The choice is a maximum, so a copy that lost to a winner still present needs no second look. All copies are
# compared only when the winner leaves, or when ranks or the date of the subscription document (R10) change.
# is_live >= 0: the document is attached. is_gone: rule R8, of all attached documents only memory has it.
_CONTEST: Final = f"""
    INSERT INTO contested
    SELECT c.identity,
        CASE WHEN c.is_full <> 0 OR EXISTS (
            SELECT 1 FROM tombstone AS t WHERE t.feed = :feed AND t.identity = c.identity
        ) OR NOT EXISTS (
            SELECT 1 FROM entry AS e
            WHERE e.feed = :feed AND e.identity = c.identity AND e.is_live = 1
                AND e.document NOT IN (SELECT document FROM changed)
        ) THEN 1 ELSE 0 END,
        CASE WHEN NOT EXISTS (
            SELECT 1 FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
            WHERE e.feed = :feed AND e.identity = c.identity AND e.is_live >= 0 AND {D_HOLDS}
        ) AND EXISTS (
            SELECT 1 FROM settled AS s
            WHERE s.feed = :feed AND s.identity = c.identity AND s.is_doubtful = 0
                AND (s.is_withdrawn = 1 OR {_HAS_ARCHIVE} = 1)
        ) THEN 1 ELSE 0 END
    FROM concerned AS c
    WHERE 1 < (
        SELECT count(*) FROM (
            SELECT 1 FROM entry AS e
            WHERE e.feed = :feed AND e.identity = c.identity AND e.is_live >= 0 LIMIT 2
        ) AS two
    ) OR EXISTS (
        SELECT 1 FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
        WHERE e.feed = :feed AND e.identity = c.identity AND e.is_live >= 0
            AND (e.is_live = 0 OR NOT {D_HOLDS})
    ) OR EXISTS (
        SELECT 1 FROM tombstone AS t WHERE t.feed = :feed AND t.identity = c.identity
    )
"""  # noqa: S608 - a constant
# With UPDATE ... FROM SQLite scanned all entries of the store and looked up each among the decided ones;
# PostgreSQL does so without UPDATE ... FROM.
_SET_LIVE: Final = either(
    sqlite="""
        UPDATE entry SET is_live = (
            SELECT d.is_live FROM decided AS d WHERE d.document = entry.document AND d.ordinal = entry.ordinal
        )
        WHERE (document, ordinal) IN (SELECT document, ordinal FROM decided)
    """,
    postgres="""
        UPDATE entry SET is_live = d.is_live FROM decided AS d
        WHERE d.document = entry.document AND d.ordinal = entry.ordinal
    """,
)
_SET_DIRTY: Final = either(
    sqlite="""
        UPDATE document SET is_dirty = 1, live_bytes = (
            SELECT coalesce(sum(size), 0) FROM entry WHERE entry.document = document.id AND is_live = 1
        )
        WHERE id IN (SELECT document FROM changed UNION SELECT document FROM decided)
    """,
    # With an array the planner uses the index at any estimated length.
    postgres="""
        UPDATE document SET is_dirty = 1, live_bytes = (
            SELECT coalesce(sum(size), 0) FROM entry WHERE entry.document = document.id AND is_live = 1
        )
        WHERE id = ANY (ARRAY(SELECT document FROM changed UNION SELECT document FROM decided))
    """,
)
_COUNT_CHANGE: Final = "UPDATE feed SET revision = revision + 1 WHERE id = :feed"
_COPY_COLUMNS: Final = f"""
    e.identity, e.document, e.ordinal, e.is_live, e.updated_at, e.fullness, d.role, d.rank, d.fetched_at,
    CASE d.role WHEN 'memory' THEN e.document_updated_at ELSE d.updated_at END AS document_updated_at,
    d.generated_at IS NOT NULL AS is_collected,
    coalesce((
        SELECT o.is_usual FROM other_id AS o WHERE o.feed = e.feed AND o.own = coalesce(e.own, e.identity)
    ), 1) AS has_usual_id,
    {_STANDING} AS standing,
    CASE WHEN (SELECT f.collection FROM feed AS f WHERE f.id = e.feed) = '{{}}' THEN NULL
        WHEN d.role = 'memory' THEN e.made_at
        ELSE coalesce(d.generated_at, d.fetched_at) END AS made_at
"""  # noqa: S608 - a constant
_COPIES: Final = f"""
    SELECT c.is_gone, {_COPY_COLUMNS}
    FROM contested AS c
    CROSS JOIN entry AS e ON e.feed = :feed AND e.identity = c.identity AND e.is_live >= 1 - c.is_full
    CROSS JOIN document AS d ON d.id = e.document
    ORDER BY c.identity, e.is_live, e.document, e.ordinal
"""  # noqa: S608 - a constant
_CHUNK_ROWS: Final = 512
_DECIDE: Final = "INSERT INTO decided VALUES (?, ?, ?)"


class DocumentsChange:
    def __init__(self, db: Database, feed: int, before: Row) -> None:
        self._db = db
        self._feed = feed
        self._before: float | None = before[0]
        self.has_tombstones, self._has_settled, self.has_renamed = (bool(before[at]) for at in (1, 2, 3))
        """Flags that spare queries. `has_renamed`: some posts have several ids (R36)."""
        self.renaming_looks: int = before[4]
        self.ambiguous: frozenset[EntryId] | None = None
        """Keys that identify nothing in the feed (R9). None: not read yet."""
        self._marked: set[int] = set()

    @classmethod
    def begin(cls, db: Database, feed: int) -> Self:
        """Begin a change before anything changes, or raise `UnknownFeedError`."""
        row = fetch_one(db, _BEFORE, {"feed": feed})
        if row is None:
            raise unknown_feed_error(feed)
        return cls(db, feed, row)

    def concern(self, document: int) -> None:
        """Choose again among the copies of each entry in the document.

        Call this before its entries go, and after new ones came.
        """
        run(self._db, _CONCERN, {"document": document})
        if self.has_tombstones:
            run(self._db, _CONCERN_BURIED, {"document": document})

    def concern_new(self, documents: Iterable[int]) -> None:
        # These documents are attached, and none is memory.
        new = list(documents)
        if not self.has_tombstones:
            of = {"feed": self._feed, "documents": json_ids(new)}
            new = [row[0] for row in fetch_all(self._db, _WITH_COPIES, of)]
        for document in new:
            self.concern(document)

    def concern_moved(self, documents: Iterable[int]) -> None:
        moved = {"documents": json_ids(documents)}
        run(self._db, _CONCERN_MOVED, moved)
        run(self._db, _CHANGE_MOVED, moved)
        if self.has_tombstones:
            run(self._db, _CONCERN_ALL_BURIED, {"feed": self._feed})

    def mark(self, documents: Iterable[int]) -> None:
        """Mark the documents' entries as new: stored as live before any decision."""
        self._marked.update(documents)

    def withdraw(self, document: int, *, is_doubtful: bool = False) -> None:
        """Settle those entries of a document that no other attached one of the publisher contains (R8).

        If `is_doubtful`, an entry may have moved to another archive document, so its remembered copy stays
        (R35).
        """
        _ = self._were_doubtful
        mark = {"document": document, "is_doubtful": int(is_doubtful)}
        self._has_settled |= run_counting(self._db, _WITHDRAW, mark) > 0

    def settle_doubtful(self) -> None:
        """Settle the doubtful entries: no archive document contains them, so they were deleted (R35)."""
        run(self._db, _CONCERN_DOUBTFUL, {"feed": self._feed})
        run(self._db, _SETTLE_DOUBTFUL, {"feed": self._feed})

    def hold(self, documents: Iterable[int]) -> None:
        """Unsettle the entries of documents that the publisher has again (R8)."""
        if not self._has_settled:
            return
        held = {"feed": self._feed, "documents": json_ids(documents)}
        if self._were_doubtful:
            self._give_way(held)
        run(self._db, _HOLD, held)

    def _give_way(self, held: Mapping[str, object]) -> None:
        """Prefer archive copies of doubtful entries to remembered copies, unless those are fuller."""
        rows = fetch_all(self._db, _IN_ARCHIVES, held)
        moved = [(row["identity"], row["fullness"]) for row in rows if row["identity"] in self._were_doubtful]
        run_many(self._db, _GIVE_WAY, [(self._feed, *each, self._feed) for each in moved])
        run_many(self._db, _CONCERN_FULLY, [(identity,) for identity, _ in moved])

    @cached_property
    def _were_doubtful(self) -> frozenset[EntryId]:
        return find_doubtful(self._db, self._feed) if self._has_settled else frozenset()

    def believe(self, shortened: Collection[EntryId]) -> None:
        """Rank remembered copies of these entries below those in an archive that shortened them (R10)."""
        run_many(self._db, _DOUBT, [(self._feed, each, self._feed) for each in shortened])
        self.concern_fully(shortened)

    def concern_fully(self, identities: Iterable[EntryId]) -> None:
        run_many(self._db, _CONCERN_FULLY, [(each,) for each in identities])

    def finish(self) -> None:
        """Choose the live copies, mark documents with changed live entries as dirty, and count the change."""
        parameters = {"feed": self._feed}
        run(self._db, _MARK, {"documents": json_ids(self._marked)})
        after = subscription_updated_at(self._db, self._feed)
        if after != self._before:
            instant = min(at for at in (self._before, after) if at is not None)
            run(self._db, _CONCERN_CLAMPED, {**parameters, "instant": instant})
        if self._has_settled:
            run(self._db, _CONCERN_UNKNOWN, parameters)
        used = ["concerned", "changed"]
        if run_counting(self._db, _CONTEST, parameters):
            used.append("contested")
            if self._decide(after):
                used.append("decided")
                run(self._db, _SET_LIVE)
        run(self._db, _SET_DIRTY)
        run(self._db, _COUNT_CHANGE, parameters)
        for table in used:  # the next change expects empty tables
            run(self._db, f"DELETE FROM {table}")  # noqa: S608 - four constants

    def _decide(self, subscription_updated_at: float | None) -> bool:
        burials = _read_burials(self._db, self._feed) if self.has_tombstones else {}
        contest = _Contest(subscription_updated_at, burials)
        cursor = self._db.execute(_COPIES, {"feed": self._feed})
        has_changed = False
        while rows := cursor.fetchmany(_CHUNK_ROWS):
            has_changed |= run_many(self._db, _DECIDE, list(contest.take(rows)))
        return run_many(self._db, _DECIDE, list(contest.end())) or has_changed


def subscription_updated_at(db: Database, feed: int) -> float | None:
    """Return the date of the subscription document, which limits those of archives and pages (R10)."""
    at: float | None = fetch_value(db, _SUBSCRIPTION_UPDATED_AT, {"feed": feed})
    return at


@dataclass(slots=True)
class _Contest:
    # Copies arrive in chunks, sorted by identity.
    subscription_updated_at: float | None
    burials: Mapping[bytes, Sequence[Burial]]
    identity: bytes | None = None
    best: Copy | None = None
    place: tuple[int, int] = (0, 0)
    was_live: bool = False
    fallen: list[tuple[int, int]] = field(default_factory=list)

    def take(self, rows: Sequence[Row]) -> Iterator[tuple[int, int, int]]:
        """Yield (document, ordinal, is_live) of each change, when an identity is complete."""
        for identity, group in groupby(rows, key=lambda row: row["identity"]):
            if identity != self.identity:
                yield from self.end()
                self.identity = identity
            self._compare(list(group))

    def end(self) -> Iterator[tuple[int, int, int]]:
        for place in self.fallen:
            yield (*place, 0)
        if self.best is not None and not self.was_live:
            yield (*self.place, 1)
        self.best = None
        self.fallen = []

    def _compare(self, rows: Sequence[Row]) -> None:
        copies = [_copy_of_row(key, row) for key, row in enumerate(rows)]
        if self.best is not None:
            copies.insert(0, self.best._replace(key=-1))
        best = choose(
            copies,
            subscription_updated_at=self.subscription_updated_at,
            settled=bool(rows[0]["is_gone"]),
            burials=self.burials.get(rows[0]["identity"], ()),
        )
        key = -1 if best is None else best.key
        self.fallen.extend(
            (row["document"], row["ordinal"]) for at, row in enumerate(rows) if row["is_live"] and at != key
        )
        if key < 0:
            return
        if self.best is not None and self.was_live:
            self.fallen.append(self.place)
        self.best = best
        self.place = (rows[key]["document"], rows[key]["ordinal"])
        self.was_live = bool(rows[key]["is_live"])


_role_named: Final = member(Role)


def _copy_of_row(key: int, row: Row) -> Copy:
    return Copy(
        key=key,
        updated_at=row["updated_at"],
        role=_role_named(row["role"]),
        position=row["rank"],
        ordinal=row["ordinal"],
        document_updated_at=row["document_updated_at"],
        fetched_at=row["fetched_at"],
        generated_at=row["made_at"],
        is_collected=bool(row["is_collected"]),
        fullness=_fullness(row),
        standing=row["standing"],
        has_usual_id=bool(row["has_usual_id"]),
    )


def _fullness(row: Row) -> int:
    fullness = row["fullness"]
    return Fullness.UNKNOWN if fullness is None else fullness


# Copies of single identities


_ATTACHED: Final = f"""
    SELECT {_COPY_COLUMNS}
    FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
    WHERE e.feed = :feed AND e.identity = :identity AND e.is_live >= 0
"""  # noqa: S608 - a constant
_LIVE: Final = f"{_ATTACHED} AND e.is_live = 1"
_SERVED: Final = f"{_LIVE} AND {D_HOLDS}"


def find_served_copies(db: Database, feed: int, identities: Iterable[EntryId]) -> dict[EntryId, Copy]:
    """Return the live copy of each identity in an attached document other than memory."""
    rows = (fetch_one(db, _SERVED, {"feed": feed, "identity": identity}) for identity in identities)
    return {EntryId(row["identity"]): _copy_of_row(0, row) for row in rows if row is not None}


def find_better_elsewhere(
    db: Database, feed: int, identities: Iterable[EntryId], document: int, *, is_page: bool
) -> set[EntryId]:
    """Return the identities with a better copy (R10) in another attached document."""
    # Unknown fullness of the document's own copy counts as full. From a page an equal rank is enough, since
    # entries mostly move to another page. In other cases an equal may be an earlier revision.
    wanted, found = list(identities), set[EntryId]()
    latest = subscription_updated_at(db, feed) if wanted else None
    for identity in wanted:
        own, others = list[Rank](), list[Rank]()
        for row in fetch_all(db, _ATTACHED, {"feed": feed, "identity": identity}):
            copy, is_own = _copy_of_row(0, row), row["document"] == document
            if is_own and row["fullness"] is None:
                copy = copy._replace(fullness=Fullness.FULL)
            (own if is_own else others).append(rank_of(copy, subscription_updated_at=latest))
        most, mine = max(others, default=None), max(own, default=_NO_RANK)
        if most is not None and (most > mine or (is_page and most == mine)):
            found.add(identity)
    return found


_DEPARTING: Final = f"""
    SELECT DISTINCT e.identity FROM entry AS e
    WHERE e.document = :document AND NOT EXISTS (
        SELECT 1 FROM entry AS other CROSS JOIN document AS d ON d.id = other.document
        WHERE other.feed = :feed AND other.identity = e.identity AND other.is_live >= 0
            AND other.document <> e.document
            AND other.document NOT IN (SELECT value FROM json_each(:documents))
            AND {_D_SETTLES}
    )
"""  # noqa: S608 - constants


def find_departing(db: Database, feed: int, document: int, waiting: Iterable[int]) -> set[EntryId]:
    """Return the identities in an attached document and in no other document of the publisher (R8, R35).

    `waiting` are documents that new versions will replace; they do not count.
    """
    named = {"feed": feed, "document": document, "documents": json_ids(waiting)}
    return {EntryId(row["identity"]) for row in fetch_all(db, _DEPARTING, named)}


_DOUBTFUL: Final = "SELECT identity FROM settled WHERE feed = :feed AND is_doubtful = 1"


def find_doubtful(db: Database, feed: int) -> frozenset[EntryId]:
    """Return the entries that have left an archive document, perhaps for another one (R35)."""
    return frozenset(EntryId(row["identity"]) for row in fetch_all(db, _DOUBTFUL, {"feed": feed}))


def settle_doubtful(db: Database, feed: int) -> None:
    change = DocumentsChange.begin(db, feed)
    change.settle_doubtful()
    change.finish()


_NO_RANK: Final = rank_copy(None, Fullness.CUT, None, None)


def count_fuller(db: Database, feed: int, said: Iterable[ComparedEntry]) -> int:
    """Return how many entries of one document have a live copy of the same date and fuller."""
    found = 0
    for each in said:
        row = fetch_one(db, _LIVE, {"feed": feed, "identity": each.identity})
        is_same = row is not None and row["updated_at"] == each.updated_at
        found += row is not None and is_same and _fullness(row) > (each.fullness or Fullness.CUT)
    return found


# Tombstones: stored forever, also after their documents are gone (rule R19)


_TOMBSTONES_OF_DOCUMENT: Final = "SELECT identity, when_at, ref FROM tombstone WHERE document = :document"
_DELETE_TOMBSTONES: Final = "DELETE FROM tombstone WHERE document = :document"
_PUT_TOMBSTONE: Final = """
    INSERT INTO tombstone (feed, identity, document, when_at, ref) VALUES (?, ?, ?, ?, ?)
"""
_KEEP_TOMBSTONE: Final = """
    INSERT INTO tombstone (feed, identity, document, when_at, ref) VALUES (?, ?, NULL, ?, ?)
    ON CONFLICT (feed, identity) WHERE document IS NULL
    DO UPDATE SET when_at = excluded.when_at WHERE excluded.when_at > tombstone.when_at
"""


def replace_tombstones(
    db: Database, feed: int, document: int, tombstones: Sequence[Tombstone], fetched_at: float
) -> None:
    """Replace the tombstones of a document; old ones stay stored, without a document.

    The instant of a deletion is limited to that of the fetch.
    """
    before = fetch_all(db, _TOMBSTONES_OF_DOCUMENT, {"document": document})
    borne = {each.identity for each in tombstones}
    fallen = [(feed, *row) for row in before if row["identity"] not in borne]
    run_many(db, _KEEP_TOMBSTONE, fallen)
    run(db, _DELETE_TOMBSTONES, {"document": document})
    rows = [(feed, t.identity, document, min(t.when_at, fetched_at), t.ref) for t in tombstones]
    run_many(db, _PUT_TOMBSTONE, rows)


_INSTANTS: Final = """
    SELECT e.updated_at, d.fetched_at FROM entry AS e CROSS JOIN document AS d ON d.id = e.document
    WHERE e.feed = :feed AND e.identity = :identity
"""
# One row serves for a deletion by the publisher and by the operator: either removes the same copies.
_FORGET: Final = f"""
    INSERT INTO tombstone (feed, identity, document, when_at, ref)
    VALUES (:feed, :identity, NULL, :when_at, '{FORGOTTEN_REF}')
    ON CONFLICT (feed, identity) WHERE document IS NULL
    DO UPDATE SET ref = excluded.ref,
        when_at = CASE WHEN excluded.when_at > tombstone.when_at THEN excluded.when_at
            ELSE tombstone.when_at END
"""  # noqa: S608 - a constant


def forget(db: Database, feed: int, identities: Iterable[EntryId], now: float) -> None:
    """Remove entries of a feed until their publisher updates them (I2); raise `UnknownFeedError`."""
    change = DocumentsChange.begin(db, feed)
    change.has_tombstones = True
    for identity in identities:
        of = {"feed": feed, "identity": identity}
        when_at = forgotten_at(map(tuple, fetch_all(db, _INSTANTS, of)), now=now)
        run(db, _FORGET, {**of, "when_at": when_at})
        run_many(db, _CONCERN_FULLY, [(identity,)])
    change.finish()


_COUNTING_TOMBSTONES: Final = f"""
    SELECT t.identity, t.when_at, t.ref FROM tombstone AS t LEFT JOIN document AS d ON d.id = t.document
    WHERE t.feed = :feed AND (t.document IS NULL OR d.rank IS NOT NULL) AND t.ref <> '{FORGOTTEN_REF}'
"""  # noqa: S608 - a constant


def list_tombstones(db: Database, feed: int) -> list[Tombstone]:
    """Return the publisher's tombstones of a feed, without those of detached documents."""
    return ask_tombstones(db, feed)()


def ask_tombstones(db: Database, feed: int) -> Callable[[], list[Tombstone]]:
    return ask(
        db,
        _COUNTING_TOMBSTONES,
        {"feed": feed},
        lambda rows: [Tombstone(EntryId(row["identity"]), row["when_at"], row["ref"]) for row in rows],
    )


_BURIALS: Final = """
    SELECT t.identity, t.when_at, t.ref, d.role, d.rank
    FROM contested AS c
    CROSS JOIN tombstone AS t ON t.feed = :feed AND t.identity = c.identity
    LEFT JOIN document AS d ON d.id = t.document
    WHERE t.document IS NULL OR d.rank IS NOT NULL
"""


def _read_burials(db: Database, feed: int) -> dict[bytes, list[Burial]]:
    found: dict[bytes, list[Burial]] = {}
    for row in fetch_all(db, _BURIALS, {"feed": feed}):
        if row["role"] is None:
            place = FORGOTTEN if row["ref"] == FORGOTTEN_REF else FALLEN_OUT
        else:
            place = place_of(Role(row["role"]), row["rank"])
        found.setdefault(row["identity"], []).append(Burial(row["when_at"], place))
    return found
