"""What a document says about the software that made it, and where its oldest entry stands.

marks = marks_of(document, api_url="https://example.org/wp-json/")
marks.generator         # "https://wordpress.org/?v=6.6", or the Atom element's uri and text
Marks.read(marks.written())
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final

from wholefeed.core.model import FeedDocument

_MAX_CHARACTERS: Final = 300
_MAX_FRAGMENT_BYTES: Final = 2000
"""Of a generator element; more than a name and an address is none."""
_LOOKED_AT_BYTES: Final = 16_384
"""Of an entry, at each end: where identities stand."""

_TAG: Final = re.compile(r"<[^>]*>")
_ADDRESS: Final = re.compile(r"""\b(?:uri|url|rdf:resource|resource)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_BLANKS: Final = re.compile(r"\s+")
# Bounded, since an entry may be as long as a document, and hold anything.
_ID: Final = re.compile(
    rb"<(?:\w{1,40}:)?(?:guid|id)\b[^>]{0,200}>\s{0,200}(?:<!\[CDATA\[)?\s{0,200}([^<\]]{1,1000})"
)
_ABOUT: Final = re.compile(rb"""\A<[^>]{0,2000}?\babout\s{0,20}=\s{0,20}["']([^"']{0,1000})["']""")
_COMMENT: Final = "#comment-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What adapters look for in a document; all of it bounded."""

    generator: str = ""
    """Address and name that the generator element gives, with one blank between."""
    api_url: str = ""
    """Target of the HTTP link of relation `https://api.w.org/` (WordPress REST API handbook, "Discovery")."""
    route: str = ""
    """The field X-Discourse-Route of the answer."""
    last_id: str = ""
    """What identifies the last entry, as written: atom:id, guid or rdf:about."""
    has_comments: bool = False
    """Whether the first entry's identity is that of a comment on a post."""

    @staticmethod
    def read(text: str) -> Marks:
        """Return what `written` gave."""
        return _read(text)

    def written(self) -> str:
        """Return it as JSON, without what is empty."""
        return json.dumps({name: value for name in _NAMES if (value := getattr(self, name))})


_NAMES: Final = tuple(each.name for each in fields(Marks))


@lru_cache(maxsize=1024)
def _read(text: str) -> Marks:
    return Marks(**json.loads(text))


def marks_of(document: FeedDocument, *, api_url: str = "", route: str = "") -> Marks:
    """Return the marks of a document that has been parsed.

    Args:
        document: It.
        api_url: As in `Marks`.
        route: As in `Marks`.
    """
    last_id, has_comments = "", False
    if document.entries:
        first, last = document.entries[0], document.entries[-1]
        last_id = _identity(document.text[last.start : last.end])
        has_comments = _COMMENT in _identity(document.text[first.start : first.end])
    return Marks(
        generator=_generator(document),
        api_url=api_url[:_MAX_CHARACTERS],
        route=route[:_MAX_CHARACTERS],
        last_id=last_id,
        has_comments=has_comments,
    )


def _generator(document: FeedDocument) -> str:
    for child in document.head.children:
        if child.name in ("generator", "generatorAgent") and child.end - child.start <= _MAX_FRAGMENT_BYTES:
            fragment = document.text[child.start : child.end].decode("utf-8", "replace")
            found = _ADDRESS.search(fragment)
            address = (found.group(1) or found.group(2) or "") if found else ""
            name = _TAG.sub(" ", fragment.replace("<![CDATA[", "").replace("]]>", ""))
            return _BLANKS.sub(" ", f"{address} {name}").strip()[:_MAX_CHARACTERS]
    return ""


def _identity(fragment: bytes) -> str:
    """Return the identity of an entry as written; empty where it has none of the usual form."""
    ends = fragment[:_LOOKED_AT_BYTES], fragment[_LOOKED_AT_BYTES:][-_LOOKED_AT_BYTES:]
    found = _ABOUT.search(fragment) or _ID.search(ends[0]) or _ID.search(ends[1])
    if found is None:
        return ""
    return found.group(1).decode("utf-8", "replace").strip()[:_MAX_CHARACTERS]
