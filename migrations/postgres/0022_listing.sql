-- 0022: histories that stand in a publisher's pages (rules H1 to H9).

-- what is known of them: JSON, as wholefeed.core.refresh.listing writes it
ALTER TABLE feed ADD COLUMN listing text NOT NULL DEFAULT '{}';
-- live entries that stand in these pages alone
ALTER TABLE feed ADD COLUMN listed integer NOT NULL DEFAULT 0;
-- when these pages are to be looked at next; NULL: never
ALTER TABLE feed ADD COLUMN list_at double precision;

-- serves the question which feeds are to be looked at now
CREATE INDEX feed_list_at ON feed (list_at) WHERE list_at IS NOT NULL;

UPDATE feed SET list_at = 0 WHERE kind = 'plain' AND state = 'remembered' AND entries >= 3;
