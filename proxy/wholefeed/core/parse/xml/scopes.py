"""What is in force for the entries that do not stand beside the head's children."""

from __future__ import annotations

from collections.abc import Sequence

from wholefeed.core.model import Scope
from wholefeed.core.parse.limits import MAX_SCOPES
from wholefeed.core.parse.xml.attributes import inner_scope, too_much
from wholefeed.core.parse.xml.guard import Guard


class FurtherScopes:
    """The surroundings of a document's entries, but for the head's: `Entry.scope` counts into them from 1.

    Args:
        guard: The document's parser.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.further: list[Scope] = []

    def inner(self, outer: Scope, attributes: Sequence[str]) -> Scope:
        """Return what holds inside of the element that begins now."""
        scope = inner_scope(outer, self._guard.declarations(), attributes)
        if expected := too_much(scope.prefixes):
            self._guard.limit(expected, "more")
        return scope

    def numbered(self, scope: Scope) -> int:
        """Return the `Entry.scope` of entries that stand in these surroundings."""
        if scope not in self.further:
            if len(self.further) == MAX_SCOPES:
                self._guard.limit(f"entries in at most {MAX_SCOPES} different surroundings", "more")
            self.further.append(scope)
        return self.further.index(scope) + 1

    def at(self, place: int, head: Scope) -> Scope:
        """Return the surroundings that an `Entry.scope` counts to."""
        return self.further[place - 1] if place else head
