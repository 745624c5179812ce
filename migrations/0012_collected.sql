-- 0012: histories that publishers have and do not link (rules R26 to R32).

ALTER TABLE feed ADD COLUMN collection TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(collection));  -- see
    -- wholefeed.core.adapters.collection

-- Who publishes it, by what stands in it (wholefeed.core.adapters.marks); NULL: nobody has looked.
ALTER TABLE document ADD COLUMN marks TEXT CHECK (marks IS NULL OR json_valid(marks));
ALTER TABLE document ADD COLUMN found_by TEXT NOT NULL DEFAULT '';  -- the adapter that asked for it
ALTER TABLE document ADD COLUMN found_in INTEGER NOT NULL DEFAULT 0;  -- in which walk through all pages, counted
ALTER TABLE document ADD COLUMN generated_at REAL;  -- of such a page: when it was made (its receipt less its Age)
