"""Slices of a document that mean the same in another one (rule R22; design, section 5).

An entry is sent as its publisher wrote it, in a document of ours. What it takes from its surroundings is
added to its start tag: namespaces, xml:lang, xml:base; an Atom entry without an author takes along its
feed's. Nothing else is touched, and what is self-contained already is left as it is.

    fragments = Fragments(document)
    bodies = [fragments.entry(n, context) for n in range(len(document.entries))]
    mask = prefixes_in(b"".join(bodies), among=fragments.prefixes)      # for the output root to declare
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Final, NamedTuple

from proxy.core.model import Entry, EntryId, FeedDocument, HeadChild
from proxy.core.references import has_relative_reference
from proxy.core.start_tags import Attribute, attribute, extended, is_simple, with_children
from proxy.core.surroundings import Surroundings, binding
from proxy.core.terms import ATOM_NS, IDENTITIES_TARGET, WELL_KNOWN_PREFIXES, Family
from proxy.core.urls import MAX_URL_CHARACTERS, resolve

ALL_PREFIXES: Final = (1 << len(WELL_KNOWN_PREFIXES)) - 1
MAX_CONTEXT_BYTES: Final = 4096
"""Of a feed's authors, and of its rights: larger ones are not repeated in its entries."""

_BITS: Final = tuple((b"%s:" % prefix.encode(), 1 << bit) for bit, prefix in enumerate(WELL_KNOWN_PREFIXES))

# Children of the Atom head that hold no reference, and those whose content may hold one (RFC 4287, 4.2).
_WITHOUT_REFERENCE: Final = frozenset({"updated", "published", "category"})
_PERHAPS_REFERENCE: Final = frozenset(
    {"title", "subtitle", "rights", "author", "contributor", "id", "icon", "logo"}
)
_WITHOUT_LANGUAGE: Final = frozenset(
    {"id", "updated", "icon", "logo", "pubDate", "lastBuildDate", "docs", "ttl", "language", "cloud"}
    | {"skipHours", "skipDays"}
)


class HeadContext(NamedTuple):
    """What Atom entries take from their feed (RFC 4287, 4.2.1 and 4.2.10), self-contained."""

    authors: tuple[bytes, ...] = ()
    rights: tuple[bytes, ...] = ()


class Fragments:
    """The self-contained slices of one document."""

    def __init__(self, document: FeedDocument) -> None:
        self.document = document
        self._text = document.text
        self._is_atom = document.family is Family.ATOM
        entries_at = min((entry.start for entry in document.entries), default=len(document.text))
        self._around = [
            Surroundings(scope, document.family, document.text, entries_at) for scope in document.scopes
        ]
        self._tag = b"<entry" if self._is_atom else b"<item"
        self._bare = self._tag + b">"

    @cached_property
    def prefixes(self) -> int:
        """Mask of the well-known prefixes that the document binds as usual: no fragment uses others."""
        mask = 0
        for around in self._around:
            mask |= around.prefixes
        return mask

    @cached_property
    def needs_context(self) -> bool:
        """Whether any entry takes something from its feed, so that `entry` depends on its context."""
        authors, rights = self._context
        entries = self.document.entries
        return bool(
            (authors and not all(entry.has_author for entry in entries))
            or (rights and not all(entry.has_rights for entry in entries))
        )

    def context(self) -> HeadContext:
        """Return what entries of this document take from it."""
        return self._context

    def entry(self, index: int, context: HeadContext | None = None) -> bytes:
        """Return an entry that can stand in the output, or in a synthesized document.

        Args:
            index: Of the entry in the document.
            context: The subscription document's; None where it is not known. Authors and rights that are
                the same there are not repeated.
        """
        entry = self.document.entries[index]
        start, end, text, around = entry.start, entry.end, self._text, self._around[entry.scope]
        added = around.used.wanted(text, start, end)
        if not self._is_atom and has_relative_reference(text, start, end):
            added.append(around.base)
        is_bare = text.startswith(self._bare, start)
        if is_bare:
            written = b"".join([each.written for each in added]) if added else b""
            behind = text[start + len(self._bare) : end]
            fragment = b"".join((self._tag, written, around.rest_of_tag, behind))
        else:
            rebase = partial(_absolute, around.scope.base)
            fragment = extended(text[start:end], [*added, *around.always], rebase)
        if self.needs_context and not (entry.has_author and entry.has_rights):
            inherited = self._inherited(entry, context, is_bare=is_bare)
            return with_children(fragment, inherited) if inherited else fragment
        return fragment

    def head_child(self, child: HeadChild) -> bytes:
        """Return an element of the head that can stand in the head of the output.

        A simple extension of Atom gains neither language nor base: it has no attributes, and neither
        counts in it (RFC 4287, 6.4.1).
        """
        text, start, end, around = self._text, child.start, child.end, self._around[0]
        rebase = partial(_absolute, around.scope.base)
        wanted = around.foreign.wanted(text, start, end) + around.default
        if self._is_atom and child.namespace != ATOM_NS and is_simple(text[start:end]):
            return extended(text[start:end], wanted, rebase)
        is_rss_link = child.name == "link" and child.namespace != ATOM_NS
        if not is_rss_link and child.name not in _WITHOUT_LANGUAGE:
            wanted += around.lang
        if self._needs_base(child):
            wanted.append(around.base)
        return extended(text[start:end], wanted, rebase)

    def gain_at_most(self, limit_bytes: int) -> bool:
        """Return whether all that is added to entries and head together is no more than that.

        An estimate answers for nearly every document; only where it is above the limit is all of it made.
        """
        entries, children = self.document.entries, self.document.head.children
        most = max(around.most_bytes for around in self._around) * (len(entries) + len(children))
        if self.needs_context:
            whole = self._explicit_context
            inherited = sum(map(len, (*whole.authors, *whole.rights)))
            most += inherited * sum(not (entry.has_author and entry.has_rights) for entry in entries)
        if most <= limit_bytes:
            return True
        left = limit_bytes
        for number, entry in enumerate(entries):
            left -= len(self.entry(number)) - (entry.end - entry.start)
            if left < 0:
                return False
        for child in children:
            left -= len(self.head_child(child)) - (child.end - child.start)
            if left < 0:
                return False
        return True

    def _needs_base(self, child: HeadChild) -> bool:
        is_atom = self._is_atom and child.namespace == ATOM_NS
        if is_atom and child.name in _WITHOUT_REFERENCE:
            return False
        if self._is_atom and not (is_atom and child.name in _PERHAPS_REFERENCE):
            return True
        return has_relative_reference(self._text, child.start, child.end, is_atom=is_atom)

    # -- what Atom entries inherit ------------------------------------------------------------------------

    @cached_property
    def _context(self) -> HeadContext:
        return self._made_context(self.head_child)

    @cached_property
    def _explicit_context(self) -> HeadContext:
        return self._made_context(self._explicit)

    def _made_context(self, made: Callable[[HeadChild], bytes]) -> HeadContext:
        if not self._is_atom:
            return HeadContext()
        return HeadContext(*(tuple(map(made, self._inheritable(name))) for name in ("author", "rights")))

    def _inheritable(self, name: str) -> list[HeadChild]:
        children = self.document.head.children
        named = [child for child in children if child.name == name and child.namespace == ATOM_NS]
        return named if sum(child.end - child.start for child in named) <= MAX_CONTEXT_BYTES else []

    def _explicit(self, child: HeadChild) -> bytes:
        """Return a head child that relies on nothing: its entry's start tag may change what is in scope."""
        scope, slice_ = self.document.head.scope, self._text[child.start : child.end]
        bindings = [binding(prefix, uri) for prefix, uri in scope.prefixes.items() if prefix]
        wanted = [each.declaration for each in bindings if each.needle in slice_]
        wanted += [attribute("xmlns", scope.prefixes.get("", "")), attribute("xml:lang", scope.lang)]
        if self._needs_base(child):
            wanted.append(self._around[0].base)
        return extended(slice_, wanted, partial(_absolute, scope.base))

    def _inherited(self, entry: Entry, context: HeadContext | None, *, is_bare: bool) -> bytes:
        own = self._context
        whole = own if is_bare else self._explicit_context
        added: list[bytes] = []
        if not entry.has_author and (context is None or context.authors != own.authors):
            added.extend(whole.authors)
        if not entry.has_rights and (context is None or context.rights != own.rights):
            added.extend(whole.rights)
        return b"".join(added)


def prefixes_in(text: bytes, among: int = ALL_PREFIXES) -> int:
    """Return the mask of the well-known prefixes that occur as `prefix:` in the text.

    Args:
        text: Fragments, or any text with names in it.
        among: The prefixes to look for. `Fragments.prefixes` saves looking for what cannot be there.
    """
    mask = 0
    for needle, bit in _BITS:
        if among & bit and needle in text:
            mask |= bit
    return mask


def synthesize(
    family: Family, version: str, fragments: Sequence[bytes], identities: Sequence[EntryId] = ()
) -> bytes:
    """Return a minimal feed document of self-contained entries, which parses back to the same ones.

    Args:
        family: Atom or RSS.
        version: Of RSS.
        fragments: From `Fragments.entry`, without a context.
        identities: Of the entries, in their order. Needed where entries have no id of their own: whether a
            link identifies one depends on the document that it stood in first (R9).
    """
    assert not identities or len(identities) == len(fragments), "every entry has an identity"
    used = 0
    for fragment in fragments:
        used |= prefixes_in(fragment, ALL_PREFIXES & ~used)
    declared = _declared(
        attribute(f"xmlns:{prefix}", uri)
        for bit, (prefix, uri) in enumerate(WELL_KNOWN_PREFIXES.items())
        if used & 1 << bit
    )
    listed = " ".join(identity.hex() for identity in identities)
    beginning = b'<?xml version="1.0" encoding="utf-8"?>\n'
    if listed:
        beginning += f"<?{IDENTITIES_TARGET} {listed}?>\n".encode()
    entries = b"".join(fragment + b"\n" for fragment in fragments)
    if family is Family.ATOM:
        root = _declared([attribute("xmlns", ATOM_NS)]) + declared
        return b"%s<feed%s>\n%s</feed>\n" % (beginning, root, entries)
    root = _declared([attribute("version", version)]) + declared
    return b"%s<rss%s>\n<channel>\n%s</channel>\n</rss>\n" % (beginning, root, entries)


def _declared(attributes: Iterable[Attribute]) -> bytes:
    return b"".join(each.written for each in attributes)


def _absolute(base: str, reference: str) -> str:
    """Return what a relative xml:base means (XML Base, section 4); one that is unusable changes nothing."""
    try:
        made = resolve(base, reference)
    except ValueError:
        return base
    return made if len(made) <= MAX_URL_CHARACTERS else base
