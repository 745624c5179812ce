"""Fuzzing: what must hold of any input at all, and the search for one where it does not (docs/fuzzing.md)."""
