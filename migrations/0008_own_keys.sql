-- 0008: a feed answers by its own key, and what led to it when it was opened, never by where it moved to (rule R25).
-- Which alias is which was not noted, and a feed that moved and came back bears no trace of it: all of them go. Whoever
-- asks by one that had led there otherwise is led there again by the publisher.

DELETE FROM alias;

-- One row: the latest Last-Modified of a feed that was forgotten. A feed that takes its place begins behind it, so that
-- no reader is told that what it had of the old one is what the new one is.
CREATE TABLE forgotten (
    id          INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    modified_at REAL    NOT NULL
) STRICT;
INSERT INTO forgotten (id, modified_at) VALUES (1, 0);
