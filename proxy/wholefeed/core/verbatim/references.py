"""Whether a piece of a feed holds relative references, which mean nothing without their base.

RSS says nothing of xml:base, so an item gains one only where a relative reference stands in it. They are
looked for where readers resolve them: in the elements that hold URLs, in href, src and url attributes, and
in those of HTML, whether it is escaped, in CDATA or neither.
"""

from __future__ import annotations

import re
from typing import Final

from wholefeed.core.text.urls import MAX_URL_CHARACTERS, resolve

# RFC 3986, section 3.1: what begins with a scheme is absolute.
_SCHEME: Final = rb"[A-Za-z][A-Za-z0-9+.\-]*:"
_QUOTE: Final = rb"(?:[\"']|&(?:quot|apos|\#0*3[49]|\#[xX]0*2[27]);|&amp;(?:quot|apos|\#39);)"
_NAMES: Final = (
    b"href",
    b"src",
    b"url",
    b"uri",
    b"srcset",
    b"poster",
    b"HREF",
    b"SRC",
    b"about",
    b"resource",
    b"img",
    b"feedUrl",
    b"accountUrl",
)

# Each search begins at one literal character and drops the usual case first, which makes it fast; white
# space is never tried in two ways, which keeps it linear.
_ATTRIBUTE: Final = re.compile(
    rb"=(?!\"http)(?:(?<=[%s]=)(?:%s)|(?<=\s=))(?!\s*+(?:%s\s*+)?+%s)"
    % (
        bytes({name[-1] for name in _NAMES}),
        b"|".join(rb"(?<=%s=)" % name for name in _NAMES),
        _QUOTE,
        _SCHEME,
    )
)
_NAMED: Final = re.compile(rb"[\s\-:](?:%s)\s*=\Z" % b"|".join(_NAMES))
_LONGEST_NAME: Final = 16
_CONTENT: Final = rb"(?:\s[^<>]*)?>\s*+(?:<!\[CDATA\[\s*+)?+(?!%s|<|\]\]>)" % _SCHEME
_ELEMENT: Final = re.compile(
    rb"<(?=[cgdluw])(?:link|comments|url|docs|wfw:comment(?:R[sS][sS])?|guid(?![^<>]*\sisPermaLink\s*=\s*[\"']\s*false))"
    + _CONTENT
)
_ATOM_ELEMENT: Final = re.compile(rb"<(?:[A-Za-z_][\w.\-]*:)?(?:uri|url|icon|logo|id)" + _CONTENT)


def has_relative_reference(
    text: bytes, start: int = 0, end: int | None = None, *, is_atom: bool = False
) -> bool:
    """Return whether the slice seems to hold a relative reference. One too many does no harm."""
    stop = len(text) if end is None else end
    if (_ATOM_ELEMENT if is_atom else _ELEMENT).search(text, start, stop):
        return True
    return any(
        _NAMED.search(text, max(start, match.end() - _LONGEST_NAME), match.start() + 1)
        for match in _ATTRIBUTE.finditer(text, start, stop)
    )


def rebased(base: str, reference: str) -> str:
    """Return what a relative xml:base means (XML Base, section 4); one that is unusable changes nothing."""
    try:
        made = resolve(base, reference)
    except ValueError:
        return base
    return made if len(made) <= MAX_URL_CHARACTERS else base
