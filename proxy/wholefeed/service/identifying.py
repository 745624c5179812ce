"""Identities of a new document's entries: by themselves (R9), then as posts of the feed (R36).

`others` are documents fetched earlier and not stored yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from wholefeed.core.compose.same_posts import pair_posts, resolve_names
from wholefeed.core.facts import DocumentFacts
from wholefeed.core.model import EntryId, Traits
from wholefeed.store.base import Database
from wholefeed.store.tables import identity_table, posts


class LookedUp(NamedTuple):
    """A document with entries identified by themselves."""

    facts: DocumentFacts
    ambiguous: frozenset[EntryId]
    """Keys that identify nothing in the feed (R9)."""
    posts: Mapping[EntryId, EntryId]
    """Identities of posts with several ids, by id."""
    new: tuple[int, ...]
    """Ordinals of entries with unknown ids."""
    has_renamed: bool = False

    @classmethod
    def of_first(cls, facts: DocumentFacts) -> LookedUp:
        return cls(facts, facts.ambiguous, {}, tuple(range(len(facts.entries))))


def look_up(
    db: Database,
    feed: int,
    facts: DocumentFacts,
    others: Sequence[DocumentFacts],
    known: Collection[EntryId] = (),
) -> LookedUp:
    """Identify entries by themselves, and find the ones new to the feed.

    The work runs in the connection's thread: there may be 100,000 entries. Ids in `known` need no look-up:
    they equal their posts' identities.
    """
    if facts.keys:
        own = facts.ambiguous.union(*(each.ambiguous for each in others))
        ambiguous = identity_table.find_ambiguous(db, feed, facts.keys, own, [each.keys for each in others])
        if ambiguous != facts.ambiguous:
            facts = facts.identify(ambiguous)
    else:
        ambiguous = facts.ambiguous
    ids = list(facts.entries.identities())
    found = posts.find(db, feed, [each for each in ids if each not in known])
    new = tuple(ordinal for ordinal, each in enumerate(ids) if each not in known and each not in found.known)
    return LookedUp(facts, ambiguous, found.posts, new, found.has_renamed)


def name_posts(
    db: Database | None,
    feed: int,
    found: LookedUp,
    traits: Sequence[Traits],
    others: Sequence[DocumentFacts],
) -> DocumentFacts:
    """Return facts with the identities of posts (R36), in the connection's thread.

    `db`: None if nothing is stored. `traits` of new entries may end early in a very long document.
    """
    ids = list(found.facts.entries.identities())
    by_ordinal = dict(zip(found.new, traits, strict=False))
    new = {ids[ordinal]: each for ordinal, each in by_ordinal.items()}
    pairs: dict[EntryId, EntryId] = {}
    if new and (db is not None or others):
        owners = defaultdict(set, {} if db is None else posts.find_owners(db, feed, new.values()))
        for other in others:
            named = list(other.entries.identities())
            for ordinal, each in other.traits.items():
                for key in (*each.ids, *each.links, *each.titles):
                    owners[key].add(named[ordinal])
        present = {found.posts.get(each, each) for each in ids if each not in new}
        pairs = pair_posts(new, owners, present=present, ambiguous=found.ambiguous)
    facts = found.facts
    if pairs or found.posts:
        names = resolve_names(ids, {**found.posts, **pairs}).names
        facts = facts.rename(names)
        pairs = {each: names[each] for each in pairs if each in names}
    has_renamed = found.has_renamed or bool(pairs)
    return replace(facts, traits=by_ordinal, pairs=pairs, has_renamed=has_renamed)
