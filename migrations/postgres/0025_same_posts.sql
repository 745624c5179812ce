-- 0025: one post under several ids is one entry (rule R36).

-- what a new entry may have in common with one that is known; the entries of stored documents get theirs when their
-- bodies are read again
CREATE TABLE trait (
    feed     bigint   NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    key      bigint   NOT NULL,
    identity bytea   NOT NULL CHECK (length(identity) = 16),
    PRIMARY KEY (feed, key, identity)
);

-- the ids of posts that have had more than one
CREATE TABLE other_id (
    feed     bigint   NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    own      bytea   NOT NULL CHECK (length(own) = 16),       -- what identifies an entry by itself (rule R9)
    identity bytea   NOT NULL CHECK (length(identity) = 16),  -- what identifies the post
    since    double precision,                                            -- since when every look has found this one; NULL: none
    is_usual smallint NOT NULL CHECK (is_usual IN (0, 1)),     -- whether the post is served under it
    PRIMARY KEY (feed, own)
);

-- serves the question which ids a post has
CREATE INDEX other_id_identity ON other_id (feed, identity);

-- what identifies the entry by itself, where its identity is another
ALTER TABLE entry ADD COLUMN own bytea CHECK (length(own) = 16);

-- serves the search for the copies of an id that turns out to be another post's
CREATE INDEX entry_own ON entry (feed, own) WHERE own IS NOT NULL;

-- how many posts have had more than one id, and since when
ALTER TABLE feed ADD COLUMN renamed integer NOT NULL DEFAULT 0;
ALTER TABLE feed ADD COLUMN renamed_since double precision;
-- when one of their ids will have been used for a day that they are not served under yet; NULL: none
ALTER TABLE feed ADD COLUMN renaming_at double precision;
-- how many looks in a row have brought new ids for most of what was known
ALTER TABLE feed ADD COLUMN renaming_looks integer NOT NULL DEFAULT 0;
