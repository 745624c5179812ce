-- 0005: what a publication was made in and from is its own. The feed's own columns change when its subscription
-- document is stored; an answer is of the publication until the next one.

ALTER TABLE feed ADD COLUMN published_family TEXT NOT NULL DEFAULT '';
ALTER TABLE feed ADD COLUMN via_url TEXT NOT NULL DEFAULT '';  -- fetch_url, as published
UPDATE feed SET published_family = family, via_url = fetch_url;
