"""What is to be sent of a document, whatever its family: its self-contained slices.

fragments = fragments_of(document)
fragments.entry(0)
"""

from __future__ import annotations

from wholefeed.core.model import FeedDocument
from wholefeed.core.terms import Family
from wholefeed.core.verbatim.fragments import Fragments
from wholefeed.core.verbatim.json_fragments import JsonFragments

AnyFragments = Fragments | JsonFragments


def fragments_of(document: FeedDocument, namespace: str | None = None) -> AnyFragments:
    """Return the self-contained slices of a document.

    Args:
        document: The document.
        namespace: The default namespace around them in the output; the family's usual one when None.
    """
    if document.family is Family.JSON:
        return JsonFragments(document)
    return Fragments(document, namespace)
