-- 0011: what can identify a settled entry that had no id of its own (rule R9), so that another item of its link is
-- told from it when it comes, and the mark stays with the one that it was made for.

ALTER TABLE settled ADD COLUMN link BLOB CHECK (length(link) = 16);
ALTER TABLE settled ADD COLUMN enclosure BLOB CHECK (length(enclosure) = 16);
ALTER TABLE settled ADD COLUMN content BLOB CHECK (length(content) = 16);
ALTER TABLE settled ADD COLUMN enclosures BLOB CHECK (length(enclosures) = 16);

-- serve the search for items of one key
CREATE INDEX settled_link ON settled (feed, link) WHERE link IS NOT NULL;
CREATE INDEX settled_enclosure ON settled (feed, enclosure) WHERE enclosure IS NOT NULL;
