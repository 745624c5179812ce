"""Texts of entries, from the entries' own pages (T1 to T6)."""
