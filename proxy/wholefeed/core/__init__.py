"""Feed history without I/O: no network, database, clock, randomness or logging.

What stands here takes values and gives values back; time comes in as an argument.
`tests/test_architecture.py` and the import contracts hold the line.
"""
