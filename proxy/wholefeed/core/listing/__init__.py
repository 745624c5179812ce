"""Histories that stand in a publisher's HTML pages (rules H2 to H6)."""
