"""A reconstruction as HTTP: prologue, segments, validators."""
