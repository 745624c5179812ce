"""Decisions without I/O: no network, database, clock, randomness or logging; time is an argument.

`tests/test_architecture.py` and the import contracts enforce it.
"""
