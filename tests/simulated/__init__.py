"""Random stories of one feed: from a refresh down to the store, with a simulated network and a virtual clock.

`python -m tests.simulated` plays them and compares two trees. Only `tests.simulated.places` knows the
program's inside.
"""
