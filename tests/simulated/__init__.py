"""Random stories of one feed: from a refresh down to the store, with a simulated network and a virtual clock.

`python -m tests.simulated` plays them and holds two trees against each other. `tests.simulated.places` has
all that the simulation knows of the inside of the program.
"""
