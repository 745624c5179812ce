"""A connection to PostgreSQL: what it does to the rest of the process."""

from __future__ import annotations

import threading
import time

SLOW_COMMIT = """
    CREATE TABLE slow (n integer);
    CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END $$;
    CREATE CONSTRAINT TRIGGER nap AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION nap()
"""


def test_an_answer_that_is_late_halts_no_other_thread(empty_postgres_url: str) -> None:
    """Who waits for a COMMIT waits, and nobody else does."""
    from wholefeed.store.postgres_connection import connect  # noqa: PLC0415 - an extra

    db = connect(empty_postgres_url)
    try:
        db.executescript(SLOW_COMMIT)
        db.execute("BEGIN")
        db.execute("INSERT INTO slow (n) VALUES (1)")
        found = list[str]()
        thread = threading.Thread(target=lambda: found.append(str(db.execute("COMMIT").statusmessage)))
        thread.start()
        steps = 0
        while thread.is_alive():
            time.sleep(0.01)
            steps += 1
        assert found == ["COMMIT"]
        assert steps > 5
    finally:
        db.close()
