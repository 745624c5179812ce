-- 0001: feeds, their documents, entries and segments.
-- Forward only. The runner adds BEGIN, application_id, the new user_version and COMMIT.
-- Times are seconds since 1970-01-01T00:00:00Z, UTC, exact to the microsecond.
-- Large values stand in tables of their own, so that the rows that are listed stay small.

CREATE TABLE feed (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: a walk may outlive its feed
    url            TEXT    NOT NULL UNIQUE,            -- the canonical key
    fetch_url      TEXT    NOT NULL,                   -- where the subscription document is asked for
    moved_to       TEXT,                               -- where permanent redirects have led of late
    moved_since    REAL,                               -- when they were first seen to
    moved_times    INTEGER NOT NULL DEFAULT 0,         -- how often in a row
    family         TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    state          TEXT    NOT NULL,
    is_walking     INTEGER NOT NULL DEFAULT 0 CHECK (is_walking IN (0, 1)),  -- a walk has not ended
    is_stale       INTEGER NOT NULL DEFAULT 0 CHECK (is_stale IN (0, 1)),    -- the publisher could not be reached
    is_private     INTEGER NOT NULL DEFAULT 0 CHECK (is_private IN (0, 1)),  -- answers are Cache-Control: private
    revision       INTEGER NOT NULL DEFAULT 0,         -- counts the changes of documents and live entries
    published_revision INTEGER NOT NULL DEFAULT 0,     -- the one that was published last
    documents      INTEGER NOT NULL DEFAULT 0,         -- as published
    entries        INTEGER NOT NULL DEFAULT 0,         -- as published
    text_bytes     INTEGER NOT NULL DEFAULT 0,         -- as published, without content coding
    parser_version INTEGER NOT NULL DEFAULT 0,
    first_seen_at  REAL    NOT NULL,
    asked_at       REAL    NOT NULL,                   -- by a reader
    checked_at     REAL,                               -- with the publisher
    fresh_until    REAL,
    modified_at    REAL,                               -- moves forward with every new digest
    notes          TEXT    NOT NULL DEFAULT '[]' CHECK (json_valid(notes)),
    digest         BLOB,                               -- of head and segments; NULL: never published
    head_prefixes  INTEGER NOT NULL DEFAULT 0,         -- a mask over WELL_KNOWN_PREFIXES
    head           BLOB,
    context        BLOB
) STRICT;

-- serves unfinished_feeds()
CREATE INDEX feed_walking ON feed (id) WHERE is_walking;

CREATE TABLE alias (
    url  TEXT    NOT NULL PRIMARY KEY,
    feed INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- serves the deletion of a feed
CREATE INDEX alias_feed ON alias (feed);

CREATE TABLE segment (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: answers pin segments by id
    feed           INTEGER REFERENCES feed (id) ON DELETE SET NULL,
    position       INTEGER,                            -- ascending in output order; NULL: retired
    retired_at     REAL,
    length         INTEGER NOT NULL,
    crc32          INTEGER NOT NULL,
    crc_shift      INTEGER NOT NULL,
    deflated_bytes INTEGER NOT NULL,                   -- of its block
    digest         BLOB    NOT NULL,
    prefixes       INTEGER NOT NULL,
    newest_at      REAL,
    oldest_at      REAL,
    entries        INTEGER NOT NULL,
    parser_version INTEGER NOT NULL,
    context        BLOB,
    CHECK ((position IS NULL) = (retired_at IS NOT NULL))
) STRICT;

-- serves snapshot() and publish(): the segments of a feed in output order
CREATE INDEX segment_feed ON segment (feed, position);
-- serves the removal of retired segments
CREATE INDEX segment_retired ON segment (retired_at) WHERE retired_at IS NOT NULL;

CREATE TABLE block (
    segment  INTEGER NOT NULL PRIMARY KEY REFERENCES segment (id) ON DELETE CASCADE,
    deflated BLOB    NOT NULL
) STRICT;

CREATE TABLE document (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    feed           INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    url            TEXT    NOT NULL,
    final_url      TEXT    NOT NULL,                   -- after redirects
    role           TEXT    NOT NULL CHECK (role IN ('subscription', 'memory', 'archive', 'page')),
    rank           INTEGER,                            -- ascending in output order within the role; NULL: detached
    detached_at    REAL,
    family         TEXT    NOT NULL,
    site_id        TEXT    NOT NULL,
    links          TEXT    NOT NULL CHECK (json_valid(links)),
    is_marked      INTEGER NOT NULL CHECK (is_marked IN (0, 1)),
    is_settled     INTEGER NOT NULL CHECK (is_settled IN (0, 1)),
    is_uncacheable INTEGER NOT NULL CHECK (is_uncacheable IN (0, 1)),
    brought_news   INTEGER NOT NULL CHECK (brought_news IN (0, 1)),
    digest         BLOB    NOT NULL,
    etag           TEXT,
    last_modified  TEXT,
    media_type     TEXT    NOT NULL,
    fetched_at     REAL    NOT NULL,
    checked_at     REAL    NOT NULL,
    updated_at     REAL,
    parser_version INTEGER NOT NULL,
    body_bytes     INTEGER NOT NULL,
    entries        INTEGER NOT NULL,
    segment        INTEGER REFERENCES segment (id) ON DELETE SET NULL,
    is_dirty       INTEGER NOT NULL CHECK (is_dirty IN (0, 1)),  -- its segment is not what its live entries are
    live_bytes     INTEGER NOT NULL,
    CHECK ((rank IS NULL) = (detached_at IS NOT NULL)),
    UNIQUE (feed, url, role)                           -- serves documents(), document_by_url()
) STRICT;

-- serves the removal of a segment, and finds who shares one
CREATE INDEX document_segment ON document (segment) WHERE segment IS NOT NULL;
-- serves placed(), and the date of the subscription document (rule R10)
CREATE INDEX document_attached ON document (feed, role, rank) WHERE rank IS NOT NULL;
-- serves purge()
CREATE INDEX document_detached ON document (detached_at) WHERE detached_at IS NOT NULL;

CREATE TABLE body (
    document INTEGER NOT NULL PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE,
    length   INTEGER NOT NULL,
    coded    BLOB    NOT NULL                          -- one zstd frame (RFC 8878) with checksum
) STRICT;

CREATE TABLE entry (
    document            INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ordinal             INTEGER NOT NULL,              -- place in its document, from the top
    feed                INTEGER NOT NULL,
    identity            BLOB    NOT NULL CHECK (length(identity) = 16),
    updated_at          REAL,
    order_at            REAL,
    size                INTEGER NOT NULL,
    document_updated_at REAL,                          -- of a remembered copy: that of the document it stood in
    is_live             INTEGER CHECK (is_live IN (0, 1)),  -- NULL: its document is detached
    PRIMARY KEY (document, ordinal)
) STRICT, WITHOUT ROWID;

-- serves the choice among the copies of an entry, wherever they stand
CREATE INDEX entry_identity ON entry (feed, identity, is_live);
-- serves the repetition of that choice when documents trade places
CREATE INDEX entry_superseded ON entry (document) WHERE is_live = 0;

CREATE TABLE settled (  -- identities that stood in an archive document which is no longer kept so (rule R8)
    feed     INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    identity BLOB    NOT NULL CHECK (length(identity) = 16),
    PRIMARY KEY (feed, identity)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
    feed     INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    url      TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    status   INTEGER,
    attempts INTEGER NOT NULL,
    first_at REAL    NOT NULL,
    last_at  REAL    NOT NULL,
    next_at  REAL    NOT NULL,
    PRIMARY KEY (feed, url)
) STRICT, WITHOUT ROWID;

CREATE TABLE probe (  -- one row, written to learn whether a full volume has room again
    id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    filler BLOB    NOT NULL
) STRICT;
