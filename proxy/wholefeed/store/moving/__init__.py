"""Moving what a SQLite database holds into a PostgreSQL database."""
