-- 0017: since when a feed is of its format.

ALTER TABLE feed ADD COLUMN family_since REAL;  -- NULL: ever since it was first seen

-- Documents of another format left when it changed.
UPDATE feed SET family_since = (
    SELECT max(d.detached_at) FROM document AS d
    WHERE d.feed = feed.id AND d.family <> feed.family AND d.memento = ''
);
