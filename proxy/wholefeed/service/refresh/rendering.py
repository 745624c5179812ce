"""What is sent of documents: rendered from what is at hand of them, else from their stored bodies.

composed = await rendering.composed(subscription, tombstones, held)
segment = await rendering.segment(rows, composed.style, held)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from wholefeed.core.jobs.rendering import (
    Composed,
    Part,
    Rendered,
    Stored,
    Style,
    compose,
    compose_slices,
    own_slices,
    render,
)
from wholefeed.core.model import FeedDocument, Tombstone
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.verbatim.fragments_of import AnyFragments
from wholefeed.service.documents.shapes import stored_as
from wholefeed.service.documents.work import work_bytes
from wholefeed.service.refresh.material import Held, read
from wholefeed.service.refresh.storing import FeedStorage
from wholefeed.store.rows import DocumentRow, NewSegment
from wholefeed.store.tables import bodies
from wholefeed.workers.pool import INLINE_BYTES

Shape = Stored | FeedDocument | AnyFragments | Rendered
"""As `Part.document`."""
_OUTLINED_BYTES: Final = 1 << 16
"""Of a segment: what of a smaller one a view takes shows its text."""


class Rendering:
    """Renders the documents of one feed.

    Args:
        storage: What is stored of the feed, and what is at hand of it.
    """

    def __init__(self, storage: FeedStorage) -> None:
        self._storage = storage
        self._work = storage.work
        self._subscription: AnyFragments | None = None  # its slices, if it was composed of them here

    async def composed(
        self, subscription: DocumentRow, tombstones: Sequence[Tombstone], held: Held
    ) -> Composed:
        """Return the head, and what segments are rendered for."""
        fresh = self._storage.fresh.get(subscription)
        if fresh is not None and fresh.document is not None:
            self._subscription = own_slices(fresh.document)
            return compose_slices(self._subscription, tombstones)
        if fresh is not None and fresh.composed is not None and not tombstones:
            return fresh.composed
        size_bytes = subscription.body_bytes
        async with self._work.turn(size_bytes):
            body = held.body
            if body is None:
                body = await self._storage.read(partial(bodies.read, document=subscription.id))
            return await self._work.run(work_bytes(body), compose, stored_as(subscription, body), tombstones)

    async def segment(
        self, rows: Sequence[DocumentRow], style: Style, held: Mapping[int, Held], *, is_mixed: bool = False
    ) -> NewSegment:
        """Return the live entries of documents as one segment.

        Args:
            rows: The documents, in output order.
            style: What it is rendered for.
            held: What was read of them before; the rest is read now.
            is_mixed: As for `render`.
        """
        async with self._work.turn(sum(row.body_bytes for row in rows)):
            parts = await self._parts(rows, style, held)
            rendered = await self._rendered(parts, style, is_mixed=is_mixed)
        return NewSegment(
            documents=tuple(row.id for row in rows),
            sealed=rendered.sealed,
            prefixes=rendered.prefixes,
            newest_at=rendered.newest_at,
            oldest_at=rendered.oldest_at,
            entries=rendered.entries,
            parser_version=PARSER_VERSION,
            context=rendered.context,
            outline=rendered.outline if rendered.sealed.length > _OUTLINED_BYTES else b"",
        )

    async def _parts(self, rows: Sequence[DocumentRow], style: Style, held: Mapping[int, Held]) -> list[Part]:
        """Take what is at hand of documents; the bodies of the others are read."""
        found = {row.id: held[row.id] for row in rows if row.id in held}
        unread = [row.id for row in rows if row.id not in found]
        if unread:
            at_hand = self._storage.fresh.at_hand()
            found |= await self._storage.read(partial(read, wanted=unread, at_hand=at_hand))
        shapes = {row.id: self._shape(row, style, found[row.id]) for row in rows}
        bodiless = [number for number, shape in shapes.items() if shape is None]
        if bodiless:  # what it was rendered for is no longer so
            found |= await self._storage.read(partial(read, wanted=bodiless, at_hand={}))
        parts = []
        for row in rows:
            shape = shapes[row.id] or self._shape(row, style, found[row.id])
            assert shape is not None, "it was read"
            parts.append(Part(shape, None if isinstance(shape, Rendered) else found[row.id].live))
        return parts

    def _shape(self, row: DocumentRow, style: Style, held: Held) -> Shape | None:
        """Return a document in the shape that takes least to render, None where its body is not there."""
        fresh, sliced = self._storage.fresh.get(row), self._subscription
        if fresh is not None and fresh.document is not None:
            is_sliced = sliced is not None and sliced.document is fresh.document
            return sliced if is_sliced else fresh.document
        rendered = fresh.rendered if fresh is not None and fresh.fits(style) else None
        if rendered is not None and rendered.entries == len(held.live):
            return rendered
        return None if held.body is None else stored_as(row, held.body)

    async def _rendered(self, parts: Sequence[Part], style: Style, *, is_mixed: bool) -> Rendered:
        if len(parts) == 1 and isinstance(parts[0].document, Rendered) and not is_mixed:
            return parts[0].document
        unparsed = [part.document.body for part in parts if isinstance(part.document, Stored)]
        unparsed_bytes = sum(map(work_bytes, unparsed))
        if unparsed_bytes:  # perhaps in another process: what can be made again is not sent there
            plain = [part._replace(document=_unsliced(part.document)) for part in parts]
            return await self._work.run(unparsed_bytes, render, plain, style, is_mixed=is_mixed)
        if sum(_size_bytes(part) for part in parts) <= INLINE_BYTES:
            return render(parts, style, is_mixed=is_mixed)
        return await asyncio.to_thread(render, parts, style, is_mixed=is_mixed)


def _unsliced(shape: Shape) -> Shape:
    return shape if isinstance(shape, Rendered | FeedDocument | Stored) else shape.document


def _size_bytes(part: Part) -> int:
    """Return the size of what is rendered."""
    match part.document:
        case Rendered() as rendered:
            return rendered.sealed.length
        case FeedDocument() as document:
            return len(document.text)
        case Stored() as stored:
            return len(stored.body)
        case slices:
            return len(slices.document.text)
