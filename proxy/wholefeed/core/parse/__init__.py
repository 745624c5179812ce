"""Bytes to a FeedDocument (R9; catalogue rows 41 to 49)."""
