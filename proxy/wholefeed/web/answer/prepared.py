"""An answer with the header fields that go with it: all that does not depend on the time of the request."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from multidict import CIMultiDict

from wholefeed.core.formats import content_type
from wholefeed.json_lines import LaidOut
from wholefeed.service.published import Held
from wholefeed.service.results import Reconstruction
from wholefeed.store.rows import FeedRow
from wholefeed.web.answer.answer import Answer, Representation, reconstruction_field, whole_answer

VARY: Final = "Accept-Encoding, Accept, Sec-Fetch-Dest"
"""What the answer under a feed's URL depends on: who opens it in a browser is led to a page."""
_OVERHEAD_BYTES: Final = 3072
"""Of the objects and the short texts of one that is held."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An answer, and its fields beside Cache-Control; those of the body are not part of a 304."""

    answer: Answer
    fields: CIMultiDict[str]
    body_fields: CIMultiDict[str]
    modified_at: float
    length: int | None
    """As `Answer.length`."""
    facts: LaidOut
    """What the log line tells of the feed."""

    def is_at_most(self, most_bytes: int) -> bool:
        """Whether the body is known to be no longer than that."""
        return self.length is not None and self.length <= most_bytes

    def fields_at(self, now: float, *, has_body: bool) -> CIMultiDict[str]:
        """Return the fields of an answer that is made now; whoever asks may add to them."""
        fields = (self.body_fields if has_body else self.fields).copy()
        if self.modified_at > now:  # RFC 9110, 8.8.2.1: never later than Date
            fields["Last-Modified"] = formatdate(now, usegmt=True)
        return fields


def prepared(reconstruction: Reconstruction, answer: Answer, *, is_healed: bool = False) -> Prepared:
    """Return an answer with its fields.

    Args:
        reconstruction: What is sent.
        answer: It, composed.
        is_healed: As in `Representation`.
    """
    feed = reconstruction.feed
    modified_at = feed.modified_at or 0.0
    if (until := feed.turn.healed_until) is not None and not is_healed:  # its entry has left since then
        modified_at = max(modified_at, until)
    fields = {
        "Feed-Reconstruction": reconstruction_field(reconstruction, is_cut=answer.is_cut),
        "ETag": answer.etag,
        "Last-Modified": formatdate(modified_at, usegmt=True),
        "Vary": VARY,
        "Link": f'<{reconstruction.via_url}>; rel="via"',
    }
    of_body = {"Content-Type": content_type(feed.published_family)}
    if (length := answer.length) is not None:
        of_body["Content-Length"] = str(length)
    if answer.is_gzip:
        of_body["Content-Encoding"] = "gzip"
    body_fields = CIMultiDict({**fields, **of_body})
    return Prepared(answer, CIMultiDict(fields), body_fields, modified_at, length, LaidOut(facts_of(feed)))


def facts_of(feed: FeedRow) -> dict[str, object]:
    """Return what the log line tells of a feed."""
    state = str(feed.visible_state)
    return {"feed": feed.id, "state": state, "documents": feed.documents, "entries": feed.entries}


def prepared_of(held: Held, wanted: Representation) -> Prepared | None:
    """Return the answer with a whole feed that is held, made at its first use; None as `whole_answer`."""
    found: Prepared | None = held.made(wanted)
    if found is None:
        snapshot = held.snapshot
        reconstruction = Reconstruction(snapshot, snapshot.feed.is_stale, held)
        answer = whole_answer(reconstruction, wanted)
        if answer is None:
            return None
        found = prepared(reconstruction, answer, is_healed=wanted.is_healed)
        answers = (answer.prologue, answer.segments, answer.sealed_prologue.block)
        urls = (wanted.self_url, wanted.whole_url, wanted.page_url)
        held.keep_made(wanted, found, _OVERHEAD_BYTES + sum(map(sys.getsizeof, (*answers, *urls))))
    return found
