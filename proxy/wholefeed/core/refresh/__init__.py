"""The order of a refresh, and its decisions from stored and fetched documents."""
