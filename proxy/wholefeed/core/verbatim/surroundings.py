"""What stands around an entry and must go along with it: namespaces, xml:lang, xml:base (rule R22)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final, NamedTuple

from wholefeed.core.model import Scope
from wholefeed.core.terms import ATOM_NAMESPACES, WELL_KNOWN_PREFIXES, Family
from wholefeed.core.verbatim.start_tags import Attribute, attribute

_NAME_BYTES: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
_MAX_LOOKS: Final = 20
"""After so many other names that end like a prefix it is declared anyway: that does no harm."""
_MAX_SINGLY: Final = 16
"""So few prefixes are looked for one by one, which is the fastest; more of them in one pass."""
_ASCII_END: Final = 0x80
_BITS: Final = {each: 1 << bit for bit, each in enumerate(WELL_KNOWN_PREFIXES.items())}
_PREFIX: Final = re.compile(rb"(?<![A-Za-z0-9_.\-\x80-\xff])([A-Za-z0-9_.\-\x80-\xff]++):")


class Binding(NamedTuple):
    """A prefix that must be declared where it occurs."""

    needle: bytes
    declaration: Attribute

    def occurs_in(self, text: bytes, start: int, end: int) -> bool:
        """Whether the prefix, and no longer one that ends like it, stands in the slice."""
        for _ in range(_MAX_LOOKS):
            start = text.find(self.needle, start, end)
            if start < 0:
                return False
            before = text[start - 1]
            if before not in _NAME_BYTES and before < _ASCII_END:
                return True
            start += 1
        return True


def binding(prefix: str, uri: str) -> Binding:
    """Return what declares a prefix."""
    return Binding(f"{prefix}:".encode(), attribute(f"xmlns:{prefix}", uri))


class Bindings:
    """Prefixes of which those must be declared that occur in a slice."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self._bindings = tuple(bindings)
        self._names = {each.needle[:-1] for each in self._bindings}
        self._is_one_pass = len(self._bindings) > _MAX_SINGLY

    def __len__(self) -> int:
        return len(self._bindings)

    @property
    def declarations(self) -> list[Attribute]:
        """All of them."""
        return [each.declaration for each in self._bindings]

    def within(self, text: bytes, start: int) -> Bindings:
        """Return those that may occur behind a place of the text, so that no others are looked for."""
        if self._is_one_pass:
            found = self._found(text, start, len(text))
            return Bindings(each for each in self._bindings if each.needle[:-1] in found)
        return Bindings(each for each in self._bindings if text.find(each.needle, start) >= 0)

    def wanted(self, text: bytes, start: int, end: int) -> list[Attribute]:
        """Return the declarations that a slice needs, which begins with a start tag."""
        if not self._is_one_pass:
            return [each.declaration for each in self._bindings if each.occurs_in(text, start, end)]
        found = self._found(text, start, end)
        return [each.declaration for each in self._bindings if each.needle[:-1] in found] if found else []

    def _found(self, text: bytes, start: int, end: int) -> set[bytes]:
        names = self._names
        return {match[1] for match in _PREFIX.finditer(text, start, end) if match[1] in names}


class Surroundings:
    """What one element that holds entries has in force for them.

    Args:
        scope: What holds inside of it.
        family: Of its document.
        namespace: The default namespace around the entries in the output.
        text: The whole document.
        entries_at: Where the first entry begins.
    """

    def __init__(self, scope: Scope, family: Family, namespace: str, text: bytes, entries_at: int) -> None:
        self._text = text
        self._entries_at = entries_at
        self._is_atom = family is Family.ATOM
        self.scope = scope
        self.default = _default_namespace(scope.prefixes.get("", ""), family, namespace)
        self.lang = [attribute("xml:lang", scope.lang)] if scope.lang else []
        self.base = attribute("xml:base", scope.base)
        self.foreign = Bindings(
            binding(prefix, uri)
            for prefix, uri in scope.prefixes.items()
            if prefix and WELL_KNOWN_PREFIXES.get(prefix) != uri
        )
        """The prefixes that not everybody knows."""
        self.always = [*self.default, *self.lang, *([self.base] if self._is_atom else [])]
        """What every entry gains that does not have it yet."""
        self.rest_of_tag = b"".join(each.written for each in self.always) + b">"

    @cached_property
    def used(self) -> Bindings:
        """Those among them that occur behind the head; most documents have none."""
        return self.foreign.within(self._text, self._entries_at)

    @cached_property
    def prefixes(self) -> int:
        """Mask of the well-known prefixes that are bound as usual."""
        return sum(_BITS.get(each, 0) for each in self.scope.prefixes.items())

    @cached_property
    def most_bytes(self) -> int:
        """No entry or child of the head gains more, but for what it inherits."""
        attributes = [*self.default, *self.lang, self.base, *self.foreign.declarations]
        return sum(len(each.written) for each in attributes)


def _default_namespace(default: str, family: Family, namespace: str) -> list[Attribute]:
    """Return the declaration of a default namespace that differs from the output's.

    Around RSS items the default namespace is RSS's own, however it is called: some documents invent one for
    what the output writes without. Only Atom's keeps its meaning there.
    """
    if default == namespace or (family is Family.RSS and default not in ATOM_NAMESPACES):
        return []
    return [attribute("xmlns", default)]
