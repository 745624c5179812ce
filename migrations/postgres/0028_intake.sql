-- 0028: intakes: lists of subscriptions whose feeds are asked for once (rules B1 to B5).

CREATE TABLE intake (
    id        text    NOT NULL PRIMARY KEY,  -- random; in the URL of its page
    began_at  double precision    NOT NULL,
    digest    bytea    NOT NULL,              -- of the list and options: the same list again is the same intake
    options   text    NOT NULL,              -- JSON: parameters of the URLs in the changed list
    left_out  integer NOT NULL,              -- lines of the list that no feed can be asked for
    unchanged text    NOT NULL               -- JSON: the first of them, as wholefeed.web.intake_routes writes them
);

CREATE TABLE intake_list (
    intake text    NOT NULL PRIMARY KEY REFERENCES intake (id) ON DELETE CASCADE,
    length integer NOT NULL,
    coded  bytea    NOT NULL                  -- as it was sent: one zstd frame (RFC 8878) with checksum
);

CREATE TABLE intake_feed (
    intake         text    NOT NULL REFERENCES intake (id) ON DELETE CASCADE,
    place          integer NOT NULL,         -- in the list, from 1
    url            text    NOT NULL,
    title          text    NOT NULL,         -- in the list
    line           integer NOT NULL,         -- of the list
    stage          text    NOT NULL,         -- waiting, here or failed
    due_at         double precision,                     -- when it is asked for; NULL: it has a result
    tries          integer NOT NULL DEFAULT 0,
    feed           bigint REFERENCES feed (id) ON DELETE SET NULL,
    is_counted     integer NOT NULL DEFAULT 0,  -- 1: it was stored and fresh, so nobody was asked
    entries_before integer NOT NULL DEFAULT 0,  -- of the subscription document
    ended_at       double precision,
    reason         text    NOT NULL DEFAULT '',
    status         integer,                  -- the publisher's
    PRIMARY KEY (intake, place)
);

-- serves the question which feeds are to be asked for
CREATE INDEX intake_feed_due ON intake_feed (due_at) WHERE due_at IS NOT NULL;

-- serves the question which feeds failed a short while ago
CREATE INDEX intake_feed_failed ON intake_feed (ended_at) WHERE stage = 'failed';

-- serves the deletion of a feed
CREATE INDEX intake_feed_feed ON intake_feed (feed) WHERE feed IS NOT NULL;
