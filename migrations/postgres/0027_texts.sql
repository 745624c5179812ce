-- 0027: texts of entries, from the entries' own pages (rules T1 to T6).

-- how many entries want such a text, how many pages have given one, and when that last changed for readers
ALTER TABLE feed ADD COLUMN texts_wanted integer NOT NULL DEFAULT 0;
ALTER TABLE feed ADD COLUMN texts integer NOT NULL DEFAULT 0;
ALTER TABLE feed ADD COLUMN texts_at double precision;

-- feeds whose texts somebody has asked for
CREATE TABLE text_plan (
    feed     bigint NOT NULL PRIMARY KEY REFERENCES feed (id) ON DELETE CASCADE,
    asked_at double precision NOT NULL,               -- by a reader, to the day
    revision bigint  NOT NULL,               -- the feed's, when it was asked for or looked at last
    due_at   double precision,                           -- when pages are to be fetched; NULL: not before the feed changes
    begun_at double precision NOT NULL DEFAULT 0,     -- when the present day of fetches began
    fetched  integer NOT NULL DEFAULT 0,     -- pages since then
    again_at double precision,                           -- pages that were fetched before are fetched again; NULL: none
    learned  text    NOT NULL DEFAULT '{}'   -- JSON, as wholefeed.service.texts writes it
);

-- serves the question which feeds are due
CREATE INDEX text_plan_due ON text_plan (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE page_text (
    feed       bigint  NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    page       bytea   NOT NULL CHECK (length(page) = 16),  -- digest of its URL, in any spelling
    url        text    NOT NULL,
    fetched_at double precision NOT NULL,
    updated_at double precision,                                        -- the entry's update that it was fetched for
    why        text    NOT NULL,                            -- the reason that it gave no text; '': it gave one
    attempts   integer NOT NULL,                            -- failures in a row that may pass
    way        text    NOT NULL,
    length     integer NOT NULL,                            -- letters and digits of its text
    digest     bytea   NOT NULL,                            -- of these
    PRIMARY KEY (feed, page)
);

-- serves the question whether another page has the same text
CREATE INDEX page_text_digest ON page_text (feed, digest);

CREATE TABLE page_text_body (
    feed   bigint  NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    page   bytea   NOT NULL CHECK (length(page) = 16),
    length integer NOT NULL,
    coded  bytea   NOT NULL,                                -- HTML: one zstd frame (RFC 8878) with checksum
    PRIMARY KEY (feed, page)
);
