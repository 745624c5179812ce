-- 0018: a segment of a collected feed holds entries, in the order of publication across the feed's documents (rule R20),
-- and not whole documents: which ones is kept beside it, so that what has changed is found without reading its text.
-- Such a feed that was published before is put in order with its next change.

CREATE TABLE member (
    segment INTEGER NOT NULL PRIMARY KEY REFERENCES segment (id) ON DELETE CASCADE,
    packed  BLOB    NOT NULL                           -- documents, then per entry its place, length and date
) STRICT;
