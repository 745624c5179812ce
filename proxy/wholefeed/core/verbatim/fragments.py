"""Slices of a document that mean the same in another one (rule R22; docs/design.md#verbatim-entries).

An entry is sent as its publisher wrote it, in a document of ours. What it takes from its surroundings is
added to its start tag: namespaces, xml:lang, xml:base; an Atom entry without an author takes along its
feed's. Nothing else is touched, and what is self-contained already is left as it is.

    fragments = Fragments(document)
    bodies = [fragments.entry(n, context) for n in range(len(document.entries))]
    mask = prefixes_in(b"".join(bodies), among=fragments.prefixes)      # see well_known.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Final

from wholefeed.core.formats import default_namespace
from wholefeed.core.model import Channel, Entry, FeedDocument, HeadChild, HeadContext
from wholefeed.core.terms import ATOM_NAMESPACES, Family
from wholefeed.core.verbatim.address_rules import RSS_OWN
from wholefeed.core.verbatim.addresses import GAIN_BYTES, may_hold_relative, with_absolute_urls
from wholefeed.core.verbatim.inheritance import Inheritable, inheritable
from wholefeed.core.verbatim.references import has_relative_reference, rebased
from wholefeed.core.verbatim.start_tags import attribute, extended, is_simple, with_children
from wholefeed.core.verbatim.surroundings import Surroundings, binding

MAX_CHILDREN_THAT_GAIN: Final = 1000
"""Of a head: in one of more, what is short and relative stays relative under a long base."""

# Children of the Atom head that hold no reference, and those whose content may hold one (RFC 4287, 4.2).
_WITHOUT_REFERENCE: Final = frozenset({"updated", "published", "category", "modified"})
_PERHAPS_REFERENCE: Final = frozenset(
    {"title", "subtitle", "rights", "author", "contributor", "id", "icon", "logo", "tagline", "copyright"}
)
_WITHOUT_LANGUAGE: Final = frozenset(
    {"id", "updated", "icon", "logo", "pubDate", "lastBuildDate", "docs", "ttl", "language", "cloud"}
    | {"skipHours", "skipDays", "modified"}
)


class Fragments:
    """The self-contained slices of one document in XML.

    Args:
        document: The document.
        namespace: The default namespace around them in the output; the family's usual one when None.
    """

    def __init__(self, document: FeedDocument, namespace: str | None = None) -> None:
        self.document = document
        self._text = document.text
        self._is_atom = document.family is Family.ATOM
        expected = default_namespace(document.family) if namespace is None else namespace
        entries_at = min([entry.start for entry in document.entries], default=len(document.text))
        self._entries_at = entries_at
        self._around = [
            Surroundings(scope, document.family, expected, document.text, entries_at)
            for scope in document.scopes
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
        authors, rights = self._inheritable
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
        is_relative = not self._is_atom and has_relative_reference(self._text, entry.start, entry.end)
        return self._cut(entry, self._text, (entry.start, entry.end), context, is_relative=is_relative)

    def sent(self, index: int, context: HeadContext | None = None) -> bytes:
        """Return an entry as it goes out: as `entry` does, with its URLs written absolute.

        Copies that are kept stay as they were written: identities may be made of what stands in them.

        Args:
            index: Of the entry in the document.
            context: The subscription document's; None where it is not known.
        """
        entry = self.document.entries[index]
        text, start, end = self._text, entry.start, entry.end
        is_relative = not self._is_atom and has_relative_reference(text, start, end)
        if self._may_hold_relative(entry, is_relative=is_relative):
            scope, family = self._around[entry.scope].scope, self.document.family
            text = with_absolute_urls(text[start:end], scope, family)
            start, end = 0, len(text)
            is_relative = is_relative and has_relative_reference(text)
        return self._cut(entry, text, (start, end), context, is_relative=is_relative)

    def all_sent(self, indices: Iterable[int], context: HeadContext | None = None) -> list[bytes]:
        """Return entries as `sent` does, at once those that gain the same in a bare start tag."""
        if not self._is_usual:
            return [self.sent(index, context) for index in indices]
        entries, text, bare, tag = self.document.entries, self._text, self._bare, self._tag
        openings, behind = [tag + around.rest_of_tag for around in self._around], len(bare)
        is_same = context is not None and context[:2] == self._context[:2]
        takes_nothing = is_same or not self.needs_context
        made = []
        for index in indices:
            _, _, _, start, end, has_author, has_rights, scope, _, _ = entries[index]
            if (takes_nothing or (has_author and has_rights)) and text.startswith(bare, start):
                made.append(openings[scope] + text[start + behind : end])
            else:
                made.append(self.sent(index, context))
        return made

    @cached_property
    def _is_usual(self) -> bool:
        """Whether each entry with a bare start tag gains the same: no prefix is used, nothing is relative."""
        uses_prefix = any(len(around.used) for around in self._around)
        if uses_prefix or self._is_atom:
            return not (uses_prefix or self._holds_relative)
        return not (self._has_odd_prefix or has_relative_reference(self._text, self._entries_at))

    def _may_hold_relative(self, entry: Entry, *, is_relative: bool) -> bool:
        """Most documents hold nothing relative, which one search tells of all their entries."""
        if not self._is_atom:
            if not is_relative and not self._has_odd_prefix:
                return False
        elif not self._holds_relative:
            return False
        return may_hold_relative(self._text, entry.start, entry.end, family=self.document.family)

    @cached_property
    def _holds_relative(self) -> bool:
        if all(entry.is_absolute for entry in self.document.entries):
            return False
        return may_hold_relative(self._text, self._entries_at, family=self.document.family)

    @cached_property
    def _has_odd_prefix(self) -> bool:
        """Whether RSS's own elements may bear a prefix, which the search for references does not know."""
        bound = (around.scope.prefixes.items() for around in self._around)
        return any(prefix and uri in RSS_OWN for prefix, uri in itertools.chain.from_iterable(bound))

    def _cut(
        self,
        entry: Entry,
        text: bytes,
        span: tuple[int, int],
        context: HeadContext | None,
        *,
        is_relative: bool,
    ) -> bytes:
        (start, end), around = span, self._around[entry.scope]
        added = around.used.wanted(text, start, end)
        if is_relative:
            added.append(around.base)
        is_bare = text.startswith(self._bare, start)
        if is_bare:
            written = b"".join([each.written for each in added]) if added else b""
            behind = text[start + len(self._bare) : end]
            fragment = b"".join((self._tag, written, around.rest_of_tag, behind))
        else:
            rebase = partial(rebased, around.scope.base)
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
        around, slice_ = self._around[0], self._head_slice(child)
        rebase = partial(rebased, around.scope.base)
        wanted = around.foreign.wanted(slice_, 0, len(slice_)) + around.default
        if self._is_atom and child.namespace not in ATOM_NAMESPACES and is_simple(slice_):
            return extended(slice_, wanted, rebase)
        is_rss_link = child.name == "link" and child.namespace not in ATOM_NAMESPACES
        if not is_rss_link and child.name not in _WITHOUT_LANGUAGE:
            wanted += around.lang
        if self._needs_base(child, slice_):
            wanted.append(around.base)
        return extended(slice_, wanted, rebase)

    def _head_slice(self, child: HeadChild, outer: bytes = b"") -> bytes:
        slice_, family = self._text[child.start : child.end], self.document.family
        if not may_hold_relative(slice_, family=family):
            return slice_
        few = len(self.document.head.children) <= MAX_CHILDREN_THAT_GAIN
        scope = self.document.head.scope
        return with_absolute_urls(slice_, scope, family, outer=outer, gain_bytes=GAIN_BYTES if few else 0)

    def channel_child(self, child: HeadChild, channel: Channel) -> bytes:
        """Return a child of an RDF channel as it goes out, under the channel's own start tag."""
        tag = self._text[channel.tag.start : channel.tag.end]
        return self._head_slice(child, tag)

    def channel(self, channel: Channel) -> bytes:
        """Return the start tag of an RDF channel, under which its children mean what they did: verbatim."""
        text, (start, end), around = self._text, channel.tag, self._around[0]
        wanted = around.foreign.wanted(text, start, channel.end) + around.default + around.lang
        if has_relative_reference(text, start, channel.end):
            wanted.append(around.base)
        tag = extended(text[start:end], wanted, partial(rebased, around.scope.base))
        return tag[:-2].rstrip() + b">" if tag.endswith(b"/>") else tag

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

    def _needs_base(self, child: HeadChild, slice_: bytes) -> bool:
        is_atom = self._is_atom and child.namespace in ATOM_NAMESPACES
        if is_atom and child.name in _WITHOUT_REFERENCE:
            return False
        if self._is_atom and not (is_atom and child.name in _PERHAPS_REFERENCE):
            return True
        return has_relative_reference(slice_, is_atom=is_atom)

    # -- what Atom entries inherit ------------------------------------------------------------------------

    @cached_property
    def _context(self) -> HeadContext:
        return self._made_context(self.head_child)

    @cached_property
    def _explicit_context(self) -> HeadContext:
        return self._made_context(self._explicit)

    def _made_context(self, made: Callable[[HeadChild], bytes]) -> HeadContext:
        authors, rights = (tuple(map(made, children)) for children in self._inheritable)
        return HeadContext(authors, rights)

    @cached_property
    def _inheritable(self) -> Inheritable:
        return inheritable(self.document)

    def _explicit(self, child: HeadChild) -> bytes:
        """Return a head child that relies on nothing: its entry's start tag may change what is in scope."""
        scope, slice_ = self.document.head.scope, self._head_slice(child)
        bindings = [binding(prefix, uri) for prefix, uri in scope.prefixes.items() if prefix]
        wanted = [each.declaration for each in bindings if each.needle in slice_]
        wanted += [attribute("xmlns", scope.prefixes.get("", "")), attribute("xml:lang", scope.lang)]
        if self._needs_base(child, slice_):
            wanted.append(self._around[0].base)
        return extended(slice_, wanted, partial(rebased, scope.base))

    def _inherited(self, entry: Entry, context: HeadContext | None, *, is_bare: bool) -> bytes:
        own = self._context
        whole = own if is_bare else self._explicit_context
        added: list[bytes] = []
        if not entry.has_author and (context is None or context.authors != own.authors):
            added.extend(whole.authors)
        if not entry.has_rights and (context is None or context.rights != own.rights):
            added.extend(whole.rights)
        return b"".join(added)
