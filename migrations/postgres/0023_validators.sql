-- 0023: publishers whose validators do not tell when a feed changes (rule R14).

-- when the publisher sent the subscription document last, and did not only say that nothing had changed
ALTER TABLE feed ADD COLUMN had_at double precision;
-- how often its validators have to change with it until they are used again; 0: they are
ALTER TABLE feed ADD COLUMN doubts integer NOT NULL DEFAULT 0;
