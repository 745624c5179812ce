-- 0026: one column says where a document comes from (wholefeed.core.origins). URLs, `role`, `memento` and `found_by` told it
-- between them. `memento` keeps where the copy or the page stands, or the name of an import.

ALTER TABLE document ADD COLUMN origin text NOT NULL DEFAULT 'publisher';

-- Replicas of the version before run on, and do not know the column. What they put gets the origin that its other columns
-- tell; under a URL that no two origins share it stays the same.
CREATE OR REPLACE FUNCTION set_origin() RETURNS trigger LANGUAGE plpgsql
    AS $$
    BEGIN
        IF NEW.origin IS NULL OR (NEW.origin = OLD.origin AND NEW.origin IN ('publisher', 'adapter', 'memento')) THEN
            NEW.origin := CASE
                WHEN NEW.role = 'memory' THEN 'memory'
                WHEN NEW.url >= 'urn:wholefeed:import:' AND NEW.url < 'urn:wholefeed:import;' THEN 'import'
                WHEN NEW.url >= 'urn:wholefeed:list:' AND NEW.url < 'urn:wholefeed:list;' THEN 'listing'
                WHEN NEW.memento <> '' THEN 'memento'
                WHEN NEW.found_by <> '' THEN 'adapter'
                ELSE 'publisher'
            END;
        END IF;
        RETURN NEW;
    END
    $$;
CREATE OR REPLACE TRIGGER document_origin BEFORE INSERT OR UPDATE OF memento, found_by ON document
    FOR EACH ROW EXECUTE FUNCTION set_origin();

-- the trigger does the rest
UPDATE document SET memento = memento WHERE role = 'memory' OR memento <> '' OR found_by <> '';
ALTER TABLE document ALTER COLUMN origin DROP DEFAULT;
