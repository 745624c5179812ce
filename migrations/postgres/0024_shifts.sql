-- 0024: archive documents whose entries move on to older ones under the same URLs (rule R35).

-- what the feed has shown of that: JSON, as the program writes it
ALTER TABLE feed ADD COLUMN shifts text NOT NULL DEFAULT '{}';
-- 1: an archive document has lost the entry, and nobody knows yet whether another one has it. What is remembered stays.
ALTER TABLE settled ADD COLUMN is_doubtful smallint NOT NULL DEFAULT 0 CHECK (is_doubtful IN (0, 1));

-- serves the question which entries of a feed are doubtful
CREATE INDEX settled_doubtful ON settled (feed) WHERE is_doubtful = 1;
