"""What identifies the entries of a document that has come: alone (R9), and as posts of the feed (R36).

    found = look_up(db, feed, facts, others)            # in the connection's thread
    traits = read_traits(document, found.new)           # here or in a worker: of what is new to the feed
    facts = name_posts(db, feed, found, traits, others)

`others` are of documents that have come before it and are not stored yet.
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
    """A document whose entries are identified by themselves, and what the feed knows of these ids."""

    facts: DocumentFacts
    ambiguous: frozenset[EntryId]
    """Keys that identify nothing in the feed (R9)."""
    posts: Mapping[EntryId, EntryId]
    """The identities of the posts that have had several ids."""
    new: tuple[int, ...]
    """The ordinals of the entries whose ids are new to the feed."""
    has_renamed: bool = False
    """Whether posts of the feed have had several ids."""

    @classmethod
    def of_first(cls, facts: DocumentFacts) -> LookedUp:
        """Return the same for the first document of a feed: nothing is known."""
        return cls(facts, facts.ambiguous, {}, tuple(range(len(facts.entries))))


def look_up(
    db: Database,
    feed: int,
    facts: DocumentFacts,
    others: Sequence[DocumentFacts],
    known: Collection[EntryId] = (),
) -> LookedUp:
    """Identify the entries of a document by themselves, and find out which are new to the feed.

    Each entry is looked at in the connection's thread: they may be a hundred thousand. Those that are `known`
    to have the identities of their posts are not looked for.
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
    """Return what is known of a document, its entries under the identities of their posts (R36).

    Args:
        db: In the connection's thread; None: nothing is stored of the feed.
        feed: The feed.
        found: The document.
        traits: Of its entries that are new to the feed; of the last of very many there may be none.
        others: Of the documents that have come before it and are not stored yet.
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
