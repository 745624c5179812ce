-- 0004: polling in the background asks which feeds were checked long enough ago and are stale.

-- serves polling_outlook(): the feeds that are due, the time of the next one, and how many there are
CREATE INDEX feed_polling ON feed (checked_at, fresh_until);
