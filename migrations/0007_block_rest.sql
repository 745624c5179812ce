-- 0007: a large block stands in several rows, so that no more of it than one is in memory for an answer; and what is
-- known of the entries of a segment, so that a view that takes some of them need not read the others.
-- Segments that were stored before are read whole until they are made again.

CREATE TABLE block_rest (
    segment  INTEGER NOT NULL REFERENCES segment (id) ON DELETE CASCADE,
    number   INTEGER NOT NULL,                         -- from 1: what stands in "block" comes first
    deflated BLOB    NOT NULL,
    UNIQUE (segment, number)
) STRICT;

CREATE TABLE outline (
    segment INTEGER NOT NULL PRIMARY KEY REFERENCES segment (id) ON DELETE CASCADE,
    packed  BLOB    NOT NULL                           -- per entry where it ends in the text, and its date
) STRICT;
