"""What a refresh asks for behind a document that is missing, and what it takes from there (rule R34).

`wholefeed.core.walk.holes` says which URLs are looked at. Here is decided which of them may cost a request,
and whether what stands there is new. A hole whose time has not come (R14) is passed by what is stored alone:
a refresh in between asks for nothing.
"""

from __future__ import annotations

from wholefeed.core.refresh.events import KnownRead
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import Drop, ReadKnown, Steps, carry_out, outcome
from wholefeed.core.refresh.progress import Answers
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.trail_start import TrailStart
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.walk import Walk


def is_left_alone(given: Given, walk: Walk, start: TrailStart, url: str) -> bool:
    """Return whether a document is not looked at: it would stand behind a hole, and may cost no request."""
    if walk.hole_url is None:
        return False
    row = start.stored_as(url)
    return given.waits(walk.hole_url) if row is None else not _is_part(walk, start, row)


def _is_part(walk: Walk, start: TrailStart, row: StoredDocument) -> bool:
    """Return whether a stored document is part of the feed, or comes back to it with the one before the hole.

    One that is detached was mostly replaced (R15): a link brings it back, a guess does not. But what left
    together with a whole feed, or with its format (R1, R23), left at one instant, and belongs together.
    """
    tip = start.stored_as(walk.tip.url)
    is_back = tip is not None and tip.rank is None and tip.detached_at == row.detached_at
    return row.rank is not None or is_back


def judge_steps(walk: Walk, start: TrailStart, answers: Answers) -> Steps[None]:
    """Let what stands behind a hole join if it is part of the feed, or brings an entry that is not stored.

    An update of what is stored does not count: a publisher that answers every URL with its newest entries
    would lead the walk on and on. What has joined before has to be stored already.
    """
    candidate = walk.candidate
    assert candidate is not None, "something waits to be judged"
    row = start.stored_as(candidate.url)
    is_new = row is not None and _is_part(walk, start, row)
    if row is None:
        wanted = tuple(identity for identity, _ in candidate.keys or ())
        read = yield from outcome(ReadKnown(wanted, url=candidate.url), KnownRead)
        is_new = any(identity not in read.known for identity in wanted)
    if not walk.judge(is_new=is_new) and answers.fresh.pop(document_key(candidate.url), None) is not None:
        yield from carry_out(Drop(candidate.url))
