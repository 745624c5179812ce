"""How a piece of work failed, as the other replicas are told: the error as text, and back.

    text = outcome_of(error)                # "" where the others are to try for themselves
    raise error_of(text)

What says something of the publisher, or of what it sent, is the same everywhere; that this replica had too
much to do is not.
"""

from __future__ import annotations

import json
from typing import Any, Final

from wholefeed.core.parse.discovery import Alternate
from wholefeed.errors import (
    DocumentError,
    ForbiddenTargetError,
    LoopDetectedError,
    NothingYetError,
    PublisherError,
    PublisherStatusError,
    PublisherTimeoutError,
    StorageFullError,
    StoreError,
    UnreadableError,
    WholefeedError,
    WorkError,
    WorkTooLongError,
)
from wholefeed.service import unopened
from wholefeed.service.documents.subscription import SeveralFeedsError

_OF_DOCUMENTS: Final = {
    each.__name__: each
    for each in (
        DocumentError,
        ForbiddenTargetError,
        LoopDetectedError,
        NothingYetError,
        PublisherError,
        PublisherStatusError,
        PublisherTimeoutError,
        UnreadableError,
    )
}
_OF_ITS_OWN: Final = {
    each.__name__: each for each in (StoreError, StorageFullError, WorkError, WorkTooLongError)
}
_CHOICE: Final = SeveralFeedsError.__name__


def outcome_of(error: BaseException) -> str:
    """Return an error as it is kept in a lease; empty where nobody else is to have it."""
    if not isinstance(error, WholefeedError):
        return ""
    if not isinstance(error, DocumentError):
        return json.dumps(_own(error)) if type(error).__name__ in _OF_ITS_OWN else ""
    plain = error.fresh_copy()
    name = type(plain).__name__
    if isinstance(plain, SeveralFeedsError):
        return json.dumps({"class": name, "url": plain.url, "feeds": [list(each) for each in plain.feeds]})
    if name not in _OF_DOCUMENTS:
        return ""
    facts = {
        "url": plain.url,
        "publisher_status": plain.publisher_status,
        "retry_after_seconds": plain.retry_after_seconds,
    }
    return json.dumps({**_own(plain), **facts})


def _own(error: WholefeedError) -> dict[str, Any]:
    return {"class": type(error).__name__, "message": str(error.args[0]), "slug": error.slug}


def error_of(outcome: str, *, retry_after_seconds: float = 0.0) -> WholefeedError:
    """Return the error that an outcome tells of, to be raised.

    Args:
        outcome: As `outcome_of` has made it; it may be another version's.
        retry_after_seconds: When a document may be asked for again at the earliest.
    """
    found = json.loads(outcome)
    name = found.pop("class")
    if name == _CHOICE:
        feeds = tuple(Alternate(*each) for each in found["feeds"])
        choice = SeveralFeedsError(found["url"], feeds)
        return choice.fresh_copy(retry_after_seconds=retry_after_seconds) if retry_after_seconds else choice
    message = found.pop("message")
    if name in _OF_ITS_OWN:
        return _OF_ITS_OWN[name](message, slug=found["slug"])
    error = _OF_DOCUMENTS.get(name, DocumentError)(message, **found)
    return error.fresh_copy(retry_after_seconds=retry_after_seconds)


def remembered_seconds(outcome: str, *, is_opening: bool) -> float:
    """Return for how long a failure counts for those who did not wait for it.

    Args:
        outcome: As `outcome_of` has made it.
        is_opening: Whether nothing is stored that would say when the publisher may be asked again.
    """
    found = json.loads(outcome)
    if found["class"] in _OF_ITS_OWN:
        return unopened.REMEMBERED_SECONDS
    if not is_opening:
        return 0.0
    return float(unopened.remembered_seconds(found.get("retry_after_seconds")))
