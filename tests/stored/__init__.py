"""Databases that this and earlier versions have made, and what is answered from them.

`tests/data/stored/NAME.db.gz` is a database, `NAME.json` what the proxy answers when it is opened, and the
files below `NAME/` are the feeds that it answers with. `tests/end_to_end/test_stored.py` compares them.
`python -m tests.stored --help` makes databases, and records answers anew where they are meant to change.
"""
