-- 0002: the version of a feed's format, and the tombstones of what publishers have deleted.
-- The copy of an entry that a tombstone removes stays where it is; it is only not live.

ALTER TABLE feed ADD COLUMN version TEXT NOT NULL DEFAULT '';  -- as published; '': the usual one of its family

CREATE TABLE tombstone (
    id       INTEGER PRIMARY KEY,
    feed     INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    identity BLOB    NOT NULL CHECK (length(identity) = 16),
    document INTEGER REFERENCES document (id) ON DELETE CASCADE,  -- NULL: no document bears it any more
    when_at  REAL    NOT NULL,
    ref      TEXT    NOT NULL                                     -- as written; '': too long to be repeated
) STRICT;

-- serves the choice among the copies of an entry, and tombstones()
CREATE INDEX tombstone_identity ON tombstone (feed, identity);
-- serves the replacement of a document
CREATE INDEX tombstone_document ON tombstone (document) WHERE document IS NOT NULL;
-- holds one a deletion when it has fallen out
CREATE UNIQUE INDEX tombstone_fallen ON tombstone (feed, identity) WHERE document IS NULL;
