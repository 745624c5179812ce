"""Fuzzing: properties of any input, and the search for an input that breaks them (docs/fuzzing.md)."""
