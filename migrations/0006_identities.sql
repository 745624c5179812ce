-- 0006: what can identify entries that have no id of their own, and which of it identifies nothing (rule R9).
-- The entries of stored documents get their keys when their bodies are read again.

CREATE TABLE entry_key (
    document   INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ordinal    INTEGER NOT NULL,
    feed       INTEGER NOT NULL,
    link       BLOB CHECK (length(link) = 16),
    enclosure  BLOB CHECK (length(enclosure) = 16),   -- of the first one
    content    BLOB NOT NULL CHECK (length(content) = 16),
    enclosures BLOB CHECK (length(enclosures) = 16),  -- of all of them
    PRIMARY KEY (document, ordinal)
) STRICT, WITHOUT ROWID;

-- serve the search for items of one key
CREATE INDEX entry_key_link ON entry_key (feed, link) WHERE link IS NOT NULL;
CREATE INDEX entry_key_enclosure ON entry_key (feed, enclosure) WHERE enclosure IS NOT NULL;

CREATE TABLE ambiguous_key (
    feed INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    key  BLOB    NOT NULL CHECK (length(key) = 16),
    PRIMARY KEY (feed, key)
) STRICT, WITHOUT ROWID;
