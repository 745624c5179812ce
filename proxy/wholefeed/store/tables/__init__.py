"""The SQL of each table, one file a subject."""
