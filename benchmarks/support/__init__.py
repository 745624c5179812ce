"""Shared parts of the benchmarks: a generated feed, its publisher, the server, and tables."""
