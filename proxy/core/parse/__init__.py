"""Bytes -> `FeedDocument`: encodings, XML under limits, one reader a family."""
