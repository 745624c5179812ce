-- 0013: copies of documents in a web archive, where their publisher does not give them (R33).

ALTER TABLE document ADD COLUMN memento TEXT NOT NULL DEFAULT '';  -- where the archive's copy stands; '': the publisher's own

-- What an archive was asked for, so that no restart asks it again.
CREATE TABLE memento_search (
    feed     INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    url      TEXT    NOT NULL,             -- as in `attempt`: of the missing document; '': the subscription document
    position TEXT    NOT NULL DEFAULT '',  -- where the next page of the index begins
    taken_at REAL,                         -- when the newest copy that was taken was made
    next_at  REAL    NOT NULL,             -- the archive is asked again
    PRIMARY KEY (feed, url)
) STRICT, WITHOUT ROWID;
