-- 0003: what is told of each document of a chain, and why the walk ended.
-- Documents that were read before have nothing remarked on them until they are read again.

ALTER TABLE document ADD COLUMN notes TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(notes));  -- when it was read
ALTER TABLE feed ADD COLUMN ending TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(ending));    -- of its last walk
