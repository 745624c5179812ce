"""The subscription document of one refresh: asked for, found just before, or stood in for.

asking = Asking(source, storage, found)
event = await asking.ask(intent)        # what the decision is told
"""

from __future__ import annotations

from collections.abc import Callable

from wholefeed.core.jobs.rendering import Style
from wholefeed.core.refresh import intents
from wholefeed.core.refresh.events import (
    Event,
    SubscriptionCame,
    SubscriptionFailed,
    SubscriptionUnchanged,
)
from wholefeed.errors import DocumentError
from wholefeed.fetch.fetched import Fetched, Validators
from wholefeed.service.documents.facts import archived_copy, failure_of, fresh_document, reply_of
from wholefeed.service.documents.source import Source
from wholefeed.service.documents.subscription import Subscription, settle_subscription
from wholefeed.service.refresh.storing import FeedStorage


def _no_style() -> None:
    return None


class Asking:
    """Belongs to one refresh.

    Args:
        source: Where documents come from.
        storage: Holds what came until it is stored.
        found: The subscription document, when it has just been fetched.
    """

    def __init__(self, source: Source, storage: FeedStorage, found: Subscription | None) -> None:
        self._source = source
        self._storage = storage
        self._found = found
        self._find_style: Callable[[], Style | None] = _no_style
        self._style: Style | None = None
        self.error: DocumentError | None = None
        """Why none could be had."""

    def style(self) -> Style | None:
        """Return what the feed's segments are rendered for, where a subscription document has come."""
        if self._style is None:
            self._style = self._find_style()
        return self._style

    async def ask(self, intent: intents.AskSubscription) -> Event:
        """Return what came of it."""
        found, self._found = self._found, None
        if found is not None and found.failure is not None:
            return await self._stand_in(found, found.failure)
        try:
            came = found or await self._fetched(intent)
        except DocumentError as exc:
            self.error = exc
            return SubscriptionFailed(failure=failure_of(exc))
        if isinstance(came, Fetched):
            return SubscriptionUnchanged(reply=reply_of(came))
        came = await self._storage.receive(came)
        self._find_style = came.obtained.style_of()
        fresh = fresh_document(came.document_url, came.obtained)
        return SubscriptionCame(
            url=came.url, reply=reply_of(came.obtained.fetched), fresh=fresh, notes=came.notes
        )

    async def _stand_in(self, found: Subscription, failure: DocumentError) -> SubscriptionFailed:
        """Take a web archive's copy, for the publisher has failed just now (R33)."""
        self.error = failure
        obtained = (await self._storage.receive(found)).obtained
        self._find_style = obtained.style_of()
        copy = archived_copy(found.document_url, obtained, is_subscription=True)
        return SubscriptionFailed(failure=failure_of(failure), copy=copy)

    async def _fetched(self, intent: intents.AskSubscription) -> Subscription | Fetched:
        validators = None
        if (row := intent.stored) is not None:
            validators = Validators(etag=row.etag, last_modified=row.last_modified, url=row.final_url)
        obtained = await self._source.obtain(intent.url, validators=validators)
        if isinstance(obtained, Fetched):
            return obtained
        if intent.searches:
            return await settle_subscription(self._source, intent.url, obtained)
        return Subscription(intent.url, obtained)
