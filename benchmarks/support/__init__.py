"""What several benchmarks need: a generated feed, its publisher, the server, and how results are shown."""
