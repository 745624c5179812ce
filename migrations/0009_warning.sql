-- 0009: readers keep the warning of a partial feed. So whoever was sent it is told when the feed has healed, by an
-- entry of the same id and a later date.

ALTER TABLE feed ADD COLUMN warning TEXT NOT NULL DEFAULT ''
    CHECK (warning IN ('', 'unsent', 'sent', 'lost', 'healed'));  -- see wholefeed.core.compose.turns
ALTER TABLE feed ADD COLUMN warned_at REAL;  -- what its entry is dated; each is dated later than the last

UPDATE feed SET
    warning = 'sent',
    warned_at = (SELECT min(a.first_at) FROM attempt AS a WHERE a.feed = feed.id AND a.url <> '')
WHERE state = 'partial' AND EXISTS (SELECT 1 FROM attempt AS a WHERE a.feed = feed.id AND a.url <> '');
