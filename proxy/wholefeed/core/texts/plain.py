"""Compare texts by their letters and digits alone: pages and feeds differ in all else (T3).

own = squeeze(strip("<p>It&#8217;s here &hellip;</p>"))      # "itshere"
hits(pieces_of(own), squeeze(text_of_the_page))
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from wholefeed.core.compose.entries import MARKUP
from wholefeed.core.text.markup import unescape

PIECE_CHARACTERS: Final = 24
MOST_PIECES: Final = 16
"""Enough to tell a text from another; each costs one search of a page."""
LONGEST: Final = 1 << 16
"""Squeezed characters of an entry's own text, for comparison."""
LETTERS_BYTES: Final = 8
"""First bytes of a text's digest; they depend on its letters alone."""


def strip(markup: str) -> str:
    return unescape(MARKUP.sub(" ", markup))


def squeeze(text: str) -> str:
    if text.isascii():  # a fifth of the time, and most of a page
        return text.translate(_ASCII)
    return _OTHERS.sub("", text).lower()


_ASCII: Final = {code: chr(code).lower() if chr(code).isalnum() else None for code in range(128)}
_OTHERS: Final = re.compile(r"[\W_]+")


def digest_text(squeezed: str, markup: str) -> bytes:
    """Return a digest of a text's letters, then one of its HTML; without letters both are of the HTML."""
    return _digest(squeezed or markup) + _digest(markup)


def _digest(text: str) -> bytes:
    made = blake2b(text.encode("utf-8", "replace"), digest_size=2 * LETTERS_BYTES).digest()
    return made[:LETTERS_BYTES]


def pieces_of(squeezed: str) -> list[str]:
    """Return pieces at even distances; a short text is one piece."""
    count = min(MOST_PIECES, len(squeezed) // PIECE_CHARACTERS)
    if count <= 1:
        return [squeezed] if squeezed else []
    step = (len(squeezed) - PIECE_CHARACTERS) / (count - 1)
    starts = (int(number * step) for number in range(count))
    return [squeezed[start : start + PIECE_CHARACTERS] for start in starts]


def share_held(pieces: list[str], squeezed: str) -> float:
    """Return the share of pieces that a text holds; 1 without pieces."""
    return sum(piece in squeezed for piece in pieces) / len(pieces) if pieces else 1.0


EXCERPT_SHARE: Final = 0.7
"""Share of an excerpt's pieces in its text: generators shorten words and leave out headings."""
_MARK_CHARACTERS: Final = 24


def without_mark(excerpt: str) -> str:
    """Return an excerpt without its end, which may be "continue reading" and the title."""
    cut = len(excerpt) - _MARK_CHARACTERS
    return excerpt[:cut] if cut >= 2 * _MARK_CHARACTERS else excerpt


def is_cut_short(text: str) -> bool:
    """Return whether a text, without white space, ends in a mark of cutting, such as `[…]` or "Read more"."""
    return _CUT.search(text, max(0, len(text) - _LONGEST_MARK)) is not None


_LONGEST_MARK: Final = 160  # "Continue reading" and the title
_CUT: Final = re.compile(
    r"(?:(?:\u2026|\.{3}|\[\.\.\])[\])]?|\[\u2026\]"
    r"|(?:continuereading|read(?:the)?(?:more|rest|full|on)|\(more\)|\[more\]|weiterlesen|liresuite|leermás"
    r"|keepreading|fullarticle).{0,120}|[\u00bb\u2192])\Z",
    re.IGNORECASE | re.DOTALL,
)
