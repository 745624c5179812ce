-- 0014: what replicas of wholefeed share beside the store: who of them lives, what each is doing, and how publishers'
-- hosts are to be treated. All of it can be lost: it grows again. Times are those of the database's clock.

CREATE TABLE replica (
    name     text             COLLATE "C" PRIMARY KEY,  -- made at random when it started
    began_at double precision NOT NULL,
    beat_at  double precision NOT NULL                  -- its last sign of life
);

CREATE TABLE lease (
    name     text             COLLATE "C" PRIMARY KEY,  -- of the work: a replica at a time does it
    replica  text             COLLATE "C" NOT NULL,
    began_at double precision NOT NULL,
    progress text             NOT NULL DEFAULT '',      -- how far it has come, for those who wait elsewhere
    outcome  text             NOT NULL DEFAULT '',      -- what it came to, for them
    ended_at double precision                           -- NULL: it is being done
);

-- serves the search for work that a dead replica has left
CREATE INDEX lease_replica ON lease (replica);
-- serves the removal of leases that nobody asks for any more
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE host (
    name          text             COLLATE "C" PRIMARY KEY,
    state         text             NOT NULL DEFAULT '',
    next_start_at double precision NOT NULL DEFAULT 0,
    blocked_until double precision NOT NULL DEFAULT 0,
    closed_until  double precision NOT NULL DEFAULT 0
);

CREATE TABLE host_slot (
    host    text             COLLATE "C" NOT NULL,
    replica text             COLLATE "C" NOT NULL,
    token   text             COLLATE "C" NOT NULL,
    took_at double precision NOT NULL,
    PRIMARY KEY (host, replica, token)
);

-- serves the removal of what dead replicas held
CREATE INDEX host_slot_replica ON host_slot (replica);
