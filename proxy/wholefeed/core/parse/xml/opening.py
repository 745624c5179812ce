"""The root of a document, which tells what it is."""

from __future__ import annotations

from typing import Final, NoReturn

from wholefeed.core.formats import ATOM_03
from wholefeed.core.parse.xml.atom import AtomParser
from wholefeed.core.parse.xml.family import FamilyParser
from wholefeed.core.parse.xml.frames import Options
from wholefeed.core.parse.xml.guard import Guard
from wholefeed.core.parse.xml.rdf import RDF_ROOT, RdfParser
from wholefeed.core.parse.xml.rss import RssParser
from wholefeed.core.terms import ATOM_03_NS, ATOM_NAMESPACES, ATOM_NS, RSS_NAMESPACES

_SHOWN_CHARACTERS: Final = 60


class NamespaceNeededError(Exception):
    """A feed of Atom declares no namespace. Never leaves this package.

    Args:
        at: Where the declaration goes.
    """

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Opening:
    """Waits for the root of a document and hands over to the parser of its family.

    Args:
        guard: The document's parser.
        url: Of the document, after redirects.
        options: What is wanted of the reading.
    """

    def __init__(self, guard: Guard, url: str, options: Options) -> None:
        self.family: FamilyParser | None = None
        self.guard = guard
        self._url = url
        self._options = options
        guard.parser.StartElementHandler = self._root_began

    def close(self) -> None:
        """Let go of expat and of the family's parser; nothing is asked of either any more."""
        self.guard.close()
        if self.family is not None:
            self.family.close()
            self.family = None

    def _root_began(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition("}")
        options = self._options
        family: FamilyParser
        if local == "rss" and (namespace in RSS_NAMESPACES or self.guard.is_written("rss")):
            family = RssParser(self.guard, self._url, options, namespace)
        elif local == "feed" and namespace in ATOM_NAMESPACES:
            version = ATOM_03 if namespace == ATOM_03_NS else "1.0"
            family = AtomParser(self.guard, self._url, options, version)
        elif name == RDF_ROOT:
            family = RdfParser(self.guard, self._url, options)
        else:
            self._refuse(namespace, local)
        self.family = family
        family.take_over(attributes)

    def _refuse(self, namespace: str, local: str) -> NoReturn:
        if local == "feed" and not namespace and "" not in self.guard.declarations():
            raise NamespaceNeededError(self.guard.parser.CurrentByteIndex + len("<feed"))
        if local == "feed":
            found = f"a feed element in namespace {namespace!r}"
            self.guard.stop("unsupported-format", "Atom, RSS or RDF", found)
        if local == "rss":
            found = f"an rss element with a prefix, in namespace {namespace!r}"
            self.guard.stop("unsupported-format", "Atom, RSS or RDF", found)
        if local == "entry" and namespace == ATOM_NS:
            self.guard.stop("not-a-feed", "a feed", "a single Atom entry")
        found = "HTML" if local.lower() == "html" else f"a document of <{local[:_SHOWN_CHARACTERS]}>"
        self.guard.stop("not-a-feed", "a feed", found)
