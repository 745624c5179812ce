-- 0017: since when a feed is of its format, when it was noted until when nobody asks for it, and what its publisher
-- has said of that.

ALTER TABLE feed ADD COLUMN family_since double precision;  -- NULL: ever since it was first seen

-- Documents of another format left when it changed.
UPDATE feed SET family_since = (
    SELECT max(d.detached_at) FROM document AS d
    WHERE d.feed = feed.id AND d.family <> feed.family AND d.memento = ''
);

-- A publisher that could not be asked: when the next attempt is, was counted from here; NULL: from checked_at.
ALTER TABLE feed ADD COLUMN failed_at double precision;

UPDATE feed SET failed_at = (
    SELECT a.last_at FROM attempt AS a WHERE a.feed = feed.id AND a.url = ''
);

-- serves polling_outlook(): the feeds that have failed by a clock that ran ahead
CREATE INDEX feed_failed ON feed (failed_at) WHERE failed_at IS NOT NULL;

-- What counts of the header fields that the subscription document came with, and a 304 may leave out (RFC 9111, 3.2).
ALTER TABLE feed ADD COLUMN cache_control text NOT NULL DEFAULT '';
ALTER TABLE feed ADD COLUMN expires text NOT NULL DEFAULT '';

UPDATE feed SET cache_control = 'private' WHERE is_private = 1;
