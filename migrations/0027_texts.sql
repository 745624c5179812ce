-- 0027: texts of entries, from the entries' own pages (rules T1 to T6).

-- how many entries want such a text, how many pages have given one, and when that last changed for readers
ALTER TABLE feed ADD COLUMN texts_wanted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feed ADD COLUMN texts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feed ADD COLUMN texts_at REAL;

-- feeds whose texts somebody has asked for
CREATE TABLE text_plan (
    feed     INTEGER NOT NULL PRIMARY KEY REFERENCES feed (id) ON DELETE CASCADE,
    asked_at REAL    NOT NULL,               -- by a reader, to the day
    revision INTEGER NOT NULL,               -- the feed's, when it was asked for or looked at last
    due_at   REAL,                           -- when pages are to be fetched; NULL: not before the feed changes
    begun_at REAL    NOT NULL DEFAULT 0,     -- when the present day of fetches began
    fetched  INTEGER NOT NULL DEFAULT 0,     -- pages since then
    again_at REAL,                           -- pages that were fetched before are fetched again; NULL: none
    learned  TEXT    NOT NULL DEFAULT '{}'   -- JSON, as wholefeed.service.texts writes it
) STRICT;

-- serves the question which feeds are due
CREATE INDEX text_plan_due ON text_plan (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE page_text (
    feed       INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    page       BLOB    NOT NULL CHECK (length(page) = 16),  -- digest of its URL, in any spelling
    url        TEXT    NOT NULL,
    fetched_at REAL    NOT NULL,
    updated_at REAL,                                        -- the entry's update that it was fetched for
    why        TEXT    NOT NULL,                            -- the reason that it gave no text; '': it gave one
    attempts   INTEGER NOT NULL,                            -- failures in a row that may pass
    way        TEXT    NOT NULL,
    length     INTEGER NOT NULL,                            -- letters and digits of its text
    digest     BLOB    NOT NULL,                            -- of these
    PRIMARY KEY (feed, page)
) STRICT, WITHOUT ROWID;

-- serves the question whether another page has the same text
CREATE INDEX page_text_digest ON page_text (feed, digest);

CREATE TABLE page_text_body (
    feed   INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    page   BLOB    NOT NULL CHECK (length(page) = 16),
    length INTEGER NOT NULL,
    coded  BLOB    NOT NULL,                                -- HTML: one zstd frame (RFC 8878) with checksum
    PRIMARY KEY (feed, page)
) STRICT;
