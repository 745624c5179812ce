"""Self-contained entries -> a minimal feed document of their family, which parses back to the same ones.

Remembered copies are kept so.

    fragments = fragments_of(document)
    text = synthesize(document.family, document.version, [fragments.entry(0)])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from wholefeed.core.formats import SEPARATOR, default_namespace, segment_end
from wholefeed.core.terms import RDF_NS, WELL_KNOWN_PREFIXES, Family
from wholefeed.core.verbatim.start_tags import Attribute, attribute
from wholefeed.core.verbatim.well_known import ALL_PREFIXES, prefixes_in

_DECLARATION: Final = b'<?xml version="1.0" encoding="utf-8"?>\n'


def synthesize(
    family: Family,
    version: str,
    fragments: Sequence[bytes],
    *,
    namespace: str | None = None,
) -> bytes:
    """Return a minimal feed document of self-contained entries, which parses back to the same ones.

    Args:
        family: Of the entries.
        version: Of RSS and JSON Feed. Atom and RDF are always 1.0: older entries say their namespace.
        fragments: From `fragments_of(document).entry`, without a context.
        namespace: The default one that they were made for; the family's usual one when None.
    """
    entries = SEPARATOR[family].join(fragments) + (segment_end(family) if fragments else b"")
    if family is Family.JSON:
        return b'{"version":"https://jsonfeed.org/version/%s","items":[\n%s\n]}\n' % (
            version.encode(),
            entries,
        )
    return _DECLARATION + _xml(family, version, namespace, _namespaces(fragments), entries)


def _xml(family: Family, version: str, namespace: str | None, declared: bytes, entries: bytes) -> bytes:
    default = attribute("xmlns", default_namespace(family) if namespace is None else namespace).written
    if family is Family.ATOM:
        return b"<feed%s%s>\n%s</feed>\n" % (default, declared, entries)
    if family is Family.RDF:
        rdf = attribute("xmlns:rdf", RDF_NS).written if b" xmlns:rdf=" not in declared else b""
        return b"<rdf:RDF%s%s%s>\n<channel/>\n%s</rdf:RDF>\n" % (default, rdf, declared, entries)
    root = attribute("version", version).written + declared
    return b"<rss%s>\n<channel>\n%s</channel>\n</rss>\n" % (root, entries)


def _namespaces(fragments: Sequence[bytes]) -> bytes:
    used = 0
    for fragment in fragments:
        used |= prefixes_in(fragment, ALL_PREFIXES & ~used)
    return _written(
        attribute(f"xmlns:{prefix}", uri)
        for bit, (prefix, uri) in enumerate(WELL_KNOWN_PREFIXES.items())
        if used & 1 << bit
    )


def _written(attributes: Iterable[Attribute]) -> bytes:
    return b"".join(each.written for each in attributes)
