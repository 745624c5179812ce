"""SQLite: migrations, connections, one writer, a few that read, what is broken."""
