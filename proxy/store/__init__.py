"""The store: feeds, their documents, entries and segments, in SQLite (design, section 6)."""
