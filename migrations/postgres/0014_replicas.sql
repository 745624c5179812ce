-- 0014: what replicas of wholefeed share beside the store: who of them lives, what each is doing, and how publishers'
-- hosts are to be treated. All of it can be lost: it grows again. Times are those of the database's clock.

-- epoch seconds at this moment, also in the middle of a transaction
CREATE FUNCTION clock_seconds() RETURNS double precision LANGUAGE sql VOLATILE
    AS 'SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)';

-- Not logged: nothing here is worth waiting for the disk, and after a crash of the server nobody holds anything.
CREATE UNLOGGED TABLE replica (
    name     text             COLLATE "C" PRIMARY KEY,  -- made at random when it started
    began_at double precision NOT NULL,
    beat_at  double precision NOT NULL                  -- its last sign of life
);

CREATE UNLOGGED TABLE lease (
    name     text             COLLATE "C" PRIMARY KEY,  -- of the work: a replica at a time does it
    feed     bigint,                                    -- that it is on, if it is on one
    replica  text             COLLATE "C" NOT NULL,
    token    text             COLLATE "C" NOT NULL,     -- of this taking of it
    began_at double precision NOT NULL,
    progress text             NOT NULL DEFAULT '',      -- how far it has come, for those who wait elsewhere
    outcome  text             NOT NULL DEFAULT '',      -- what it came to, for them
    ended_at double precision                           -- NULL: it is being done
);

-- serves the search for walks that nobody is at
CREATE INDEX lease_feed ON lease (feed) WHERE feed IS NOT NULL;
-- serves the search for work that a dead replica has left
CREATE INDEX lease_replica ON lease (replica);
-- serves the removal of leases that nobody asks for any more
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE host (
    name       text             COLLATE "C" PRIMARY KEY,
    stamp      text             COLLATE "C" NOT NULL,  -- of this state alone: who changes it names the one it read
    before     text             COLLATE "C" NOT NULL,  -- the stamp that a change names; not what stands here
    state      text             NOT NULL,              -- JSON: places, who waits for one, pace, Retry-After, ports
    kept_until double precision NOT NULL               -- there is nothing to remember after that
) WITH (fillfactor = 50);
-- A request changes its host's row twice: room in the page, and no index on what changes, make that cheap.
