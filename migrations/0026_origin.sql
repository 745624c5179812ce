-- 0026: one column says where a document comes from (wholefeed.core.origins). URLs, `role`, `memento` and `found_by` told it
-- between them. `memento` keeps where the copy or the page stands, or the name of an import.

ALTER TABLE document ADD COLUMN origin TEXT NOT NULL DEFAULT 'publisher';

UPDATE document SET origin = CASE
    WHEN role = 'memory' THEN 'memory'
    WHEN url >= 'urn:wholefeed:import:' AND url < 'urn:wholefeed:import;' THEN 'import'
    WHEN url >= 'urn:wholefeed:list:' AND url < 'urn:wholefeed:list;' THEN 'listing'
    WHEN memento <> '' THEN 'memento'
    ELSE 'adapter'
END
WHERE role = 'memory' OR memento <> '' OR found_by <> '';
