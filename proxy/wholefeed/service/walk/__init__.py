"""The fetches of a walk, and whose walk may use the network."""
