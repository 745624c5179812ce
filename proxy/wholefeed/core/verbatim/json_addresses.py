"""URLs of a JSON Feed written absolute; `addresses` does it for XML (rule R22).

slice_ = with_absolute_members(slice_, ITEM_URLS, base)
"""

from __future__ import annotations

import json
import re
from typing import Final

from wholefeed.core.verbatim.addresses import GAIN_BYTES, GAIN_FACTOR, absolute

_Paths = frozenset[tuple[str, ...]]
_PERSONS: Final = frozenset(
    (*person, name) for person in (("author",), ("authors", "")) for name in ("url", "avatar")
)
ITEM_URLS: Final[_Paths] = _PERSONS | {
    ("url",),
    ("external_url",),
    ("image",),
    ("banner_image",),
    ("attachments", "", "url"),
}
"""Where URLs stand in an item (JSON Feed 1.1); an empty name stands for the elements of an array."""
HEAD_URLS: Final[_Paths] = _PERSONS | {("home_page_url",), ("icon",), ("favicon",)}

_PERHAPS: Final = re.compile(
    rb'"(?:url|external_url|image|banner_image|avatar|home_page_url|icon|favicon)"\s*+:\s*+"'
    rb"(?!\s*+(?:[A-Za-z][A-Za-z0-9+.\-]*+:|\"))"
)
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)


def with_absolute_members(slice_: bytes, paths: _Paths, base: str) -> bytes:
    """Return an object of a JSON Feed with the URLs in it written absolute.

    Args:
        slice_: The object as it was written; it is well-formed.
        paths: Where URLs stand in it.
        base: The document's URL. JSON Feed has no other base.
    """
    if not _PERHAPS.search(slice_):
        return slice_
    pieces: list[bytes] = []
    position, room = 0, GAIN_FACTOR * len(slice_) + GAIN_BYTES
    path: list[str] = []
    is_array: list[bool] = []
    name_follows = False
    for match in _TOKEN.finditer(slice_):
        match token := match[0]:
            case b"{" | b"[":
                is_array.append(token == b"[")
                path.append("")
                name_follows = token == b"{"
            case b"}" | b"]":
                is_array.pop()
                path.pop()
                name_follows = False
            case b",":
                name_follows = not is_array[-1]
            case b":":
                name_follows = False
            case _ if name_follows:
                path[-1] = json.loads(token)
            case _ if tuple(path) in paths:
                made = absolute(base, json.loads(token))
                written = json.dumps(made, ensure_ascii=False).encode()
                if made and len(written) - len(token) <= room:
                    room -= max(0, len(written) - len(token))
                    pieces += (slice_[position : match.start()], written)
                    position = match.end()
    return b"".join((*pieces, slice_[position:]))
