-- 0028: intakes: lists of subscriptions whose feeds are asked for once (rules B1 to B5).

CREATE TABLE intake (
    id        TEXT    NOT NULL PRIMARY KEY,  -- random; in the URL of its page
    began_at  REAL    NOT NULL,
    digest    BLOB    NOT NULL,              -- of the list and options: the same list again is the same intake
    options   TEXT    NOT NULL,              -- JSON: parameters of the URLs in the changed list
    left_out  INTEGER NOT NULL,              -- lines of the list that no feed can be asked for
    unchanged TEXT    NOT NULL               -- JSON: the first of them, as wholefeed.web.intake_routes writes them
) STRICT, WITHOUT ROWID;

CREATE TABLE intake_list (
    intake TEXT    NOT NULL PRIMARY KEY REFERENCES intake (id) ON DELETE CASCADE,
    length INTEGER NOT NULL,
    coded  BLOB    NOT NULL                  -- as it was sent: one zstd frame (RFC 8878) with checksum
) STRICT;

CREATE TABLE intake_feed (
    intake         TEXT    NOT NULL REFERENCES intake (id) ON DELETE CASCADE,
    place          INTEGER NOT NULL,         -- in the list, from 1
    url            TEXT    NOT NULL,
    title          TEXT    NOT NULL,         -- in the list
    line           INTEGER NOT NULL,         -- of the list
    stage          TEXT    NOT NULL,         -- waiting, here or failed
    due_at         REAL,                     -- when it is asked for; NULL: it has a result
    tries          INTEGER NOT NULL DEFAULT 0,
    feed           INTEGER REFERENCES feed (id) ON DELETE SET NULL,
    is_counted     INTEGER NOT NULL DEFAULT 0,  -- 1: it was stored and fresh, so nobody was asked
    entries_before INTEGER NOT NULL DEFAULT 0,  -- of the subscription document
    ended_at       REAL,
    reason         TEXT    NOT NULL DEFAULT '',
    status         INTEGER,                  -- the publisher's
    PRIMARY KEY (intake, place)
) STRICT, WITHOUT ROWID;

-- serves the question which feeds are to be asked for
CREATE INDEX intake_feed_due ON intake_feed (due_at) WHERE due_at IS NOT NULL;

-- serves the question which feeds failed a short while ago
CREATE INDEX intake_feed_failed ON intake_feed (ended_at) WHERE stage = 'failed';

-- serves the deletion of a feed
CREATE INDEX intake_feed_feed ON intake_feed (feed) WHERE feed IS NOT NULL;
