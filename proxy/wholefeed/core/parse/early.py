"""The head of a document whose entries still arrive: what the older link is predicted from (R0).

early = EarlyHead(url, "application/atom+xml")
for chunk in chunks:
if (document := early.feed(chunk)) is not None:
...     # once, when the first entry begins
"""

from __future__ import annotations

import codecs
from typing import Final

from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.documents import refuse_other_formats
from wholefeed.core.parse.encodings import SNIFF_BYTES, encoding_of
from wholefeed.core.parse.limits import MAX_DEPTH
from wholefeed.core.parse.xml.frames import Options
from wholefeed.core.parse.xml.guard import Guard
from wholefeed.core.parse.xml.opening import NamespaceNeededError, Opening

MAX_HEAD_BYTES: Final = 256 * 1024
MAX_HEAD_TAGS: Final = 1024
"""Ten times as many as heads have. It is read while others wait, and few bytes on the wire may be many tags:
of 256 KB of links, which takes 100 ms, nothing is gained (docs/faults.md row 87)."""
_PIECE_BYTES: Final = 4096


class EarlyHead:
    """Reads a document as far as its first entry. Never raises: on any trouble it never answers.

    Args:
        url: Of the document, after redirects.
        media_type: The whole Content-Type value; may be empty.
        max_depth: Levels of elements that are accepted.
    """

    def __init__(self, url: str, media_type: str, *, max_depth: int = MAX_DEPTH) -> None:
        self._url = url
        self._media_type = media_type
        self._max_depth = max_depth
        self._opening: Opening | None = None
        """What reads on, since enough has come to tell the encoding."""
        self._text = bytearray()
        self._waiting = bytearray()
        self._decoder: codecs.IncrementalDecoder | None = None
        self._taken_bytes = self._tags = 0
        self._is_done = False

    def feed(self, chunk: bytes) -> FeedDocument | None:
        """Take the next piece of the body, without content coding.

        Returns:
            The document so far, without entries, once: when its first entry has begun.
        """
        if self._is_done:
            return None
        try:
            self._read(chunk)
            document = self._document()
        except (ValueError, LookupError, RecursionError, MemoryError, NamespaceNeededError):
            document = None
            self.close()
        if document is not None or self._taken_bytes > MAX_HEAD_BYTES or self._tags > MAX_HEAD_TAGS:
            self.close()
        return document

    def close(self) -> None:
        """Read no further; without that the parser and what it tells would keep one another."""
        if not self._is_done and self._opening is not None:
            self._opening.close()
        self._is_done = True
        self._text = self._waiting = bytearray()
        self._decoder = None

    def _read(self, chunk: bytes) -> None:
        if self._opening is None:
            self._waiting += chunk
            if len(self._waiting) < SNIFF_BYTES:
                return
            chunk, self._opening = self._begin(), self._opened()
        opening = self._opening
        chunk = chunk[: MAX_HEAD_BYTES + 1]
        self._taken_bytes += len(chunk)
        text = self._decoder.decode(chunk).encode() if self._decoder is not None else chunk
        self._text += text
        for start in range(0, len(text), _PIECE_BYTES):  # most of a chunk stands behind the first entry
            piece = text[start : start + _PIECE_BYTES]
            self._tags += piece.count(b"<")
            opening.guard.feed(piece)
            is_over = opening.family is not None and opening.family.has_entered
            if is_over or self._tags > MAX_HEAD_TAGS:
                return

    def _begin(self) -> bytes:
        """Settle the encoding, and return what has waited for that."""
        body = bytes(self._waiting)
        self._waiting.clear()
        encoding = encoding_of(body, self._media_type)
        body = body[encoding.mark_bytes :]
        if encoding.codec != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding.codec)()
        else:
            refuse_other_formats(body)
        return body

    def _opened(self) -> Opening:
        guard = Guard(max_depth=self._max_depth)
        guard.text = self._text
        return Opening(guard, self._url, Options(is_early=True))

    def _document(self) -> FeedDocument | None:
        family = None if self._opening is None else self._opening.family
        if family is None or not family.has_entered:
            return None
        return family.document(bytes(self._text[: family.start_at]))
