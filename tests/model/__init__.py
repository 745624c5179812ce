"""Every answer held against a model of the rules: `python -m tests.model --stories 1000 --seed 1`.

`rules` says what has to be served, by docs/rules.md alone (`said` is what it is told, `asking` holds the
requests against what had to be asked for, `choice` takes one copy of each entry); `publisher` is a publisher
that changes its mind and `documents` writes what it says; `stories` plays the two against the proxy, and
`known` names what is known to be wrong, which stories keep off. `blogs` has stories of a WordPress, whose
author knows what a reader must be given, `archived` of documents that only a web archive has; `short` is what
all stories have in common.
"""
