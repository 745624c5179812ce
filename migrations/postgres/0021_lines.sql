-- 0021: a feed can be replayed from its beginning at a pace (rules P1 to P9). One that was asked for so has lines: an
-- entry's number, when it came, and when it was published; they stay when the entry goes, and are never renumbered.

-- how many lines it had when they were begun; NULL: nobody has asked for a replay
ALTER TABLE feed ADD COLUMN lines_begun integer;

CREATE TABLE line (
    feed       bigint           NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    number     integer          NOT NULL,              -- from 1, in the order of arrival
    identity   bytea            NOT NULL CHECK (length(identity) = 16),
    arrived_at bigint           NOT NULL,
    sorted_at  double precision NOT NULL,              -- of one without a date, that of its older neighbour
    is_dated   smallint         NOT NULL CHECK (is_dated IN (0, 1)),
    PRIMARY KEY (feed, number)
);

-- serves the question which entries have a line
CREATE UNIQUE INDEX line_identity ON line (feed, identity);

CREATE TABLE lined (
    segment bigint PRIMARY KEY REFERENCES segment (id) ON DELETE CASCADE,
    packed  bytea  NOT NULL                            -- per entry of the segment, from the top, the number of its line
);
