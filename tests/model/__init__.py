"""Every answer compared with a model of the rules: `python -m tests.model --stories 1000 --seed 1`.

`rules` computes the feed to be served, from docs/rules.md alone, with three helpers: `said` models a
publisher's statements, `asking` checks the proxy's requests, `choice` takes one copy of each entry.
`publisher` is a publisher that changes its mind, and `documents` writes its documents. `stories` plays the
two against the proxy. `known` names known defects, which stories avoid. `blogs` has stories of a WordPress
with a known truth, `archived` of documents that only a web archive has. `short` is common to all stories.
"""
