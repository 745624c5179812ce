"""Databases of this and earlier versions, and the answers from them.

`tests/data/stored/NAME.db.gz` is a database, `NAME.json` the proxy's answers on it, and the files below
`NAME/` are its feeds. `tests/end_to_end/test_stored.py` compares them. `python -m tests.stored --help` makes
databases, and records answers anew after an intended change.
"""
