"""All public reasons: their HTTP statuses, their words, and whether they pass by themselves.

A slug ends a problem document's type, and is the `reason` in `/status`. Its meaning never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Slug:
    answers: tuple[int, ...] = ()
    """HTTP statuses, the usual one first; empty: start-up, or missing documents."""
    words: str = ""
    """For readers of the feed (R16; PaceFeedState). Entries must not churn: no status, no count."""
    lasts: bool = False
    """Whether it does not pass by itself within minutes."""

    @property
    def status(self) -> int:
        return self.answers[0] if self.answers else 500


_FAILED: Final = "the publisher sent an error instead of the document"
_SILENT: Final = "the publisher did not respond in time"
_OUT_OF_REACH: Final = "the publisher could not be reached"
_DAMAGED: Final = "the publisher's response broke off or was damaged"
_AROUND: Final = "the publisher redirects from one address to the next without end"
_UNREADABLE: Final = "the document there cannot be read"
_REFUSED: Final = "this proxy does not go to that address"
_NO_ADDRESS: Final = "the link to it is no web address"

SLUGS: Final = {
    "ambiguous-host": Slug(answers=(400,), words=_NO_ADDRESS),
    "another-feed": Slug(answers=(422,)),
    "bad-link": Slug(answers=(502,), words=_NO_ADDRESS, lasts=True),
    "bad-redirect": Slug(answers=(502,), words=_AROUND, lasts=True),
    "bad-request": Slug(answers=(400,)),
    "bad-signature": Slug(answers=(403,)),
    "config": Slug(),
    "connection-failed": Slug(answers=(502,), words=_OUT_OF_REACH),
    "content-coding": Slug(answers=(502,), words=_DAMAGED, lasts=True),
    "cross-origin": Slug(answers=(403,)),
    "cross-origin-unconfirmed": Slug(
        words="the document is at another site and does not say that it belongs to this feed", lasts=True
    ),
    "current-unavailable": Slug(
        words="it is an old document, and the newest entries of its feed could not be fetched"
    ),
    "destination-forbidden": Slug(answers=(403,), words=_REFUSED, lasts=True),
    "dns-error": Slug(answers=(502,), words=_OUT_OF_REACH),
    "dns-timeout": Slug(answers=(504,), words=_SILENT),
    "downgrade": Slug(answers=(502,), words=_REFUSED, lasts=True),
    "dtd-forbidden": Slug(answers=(422,), words=_UNREADABLE, lasts=True),
    "empty": Slug(answers=(502,), words=_DAMAGED, lasts=True),
    "expired-signature": Slug(answers=(403,)),
    "format": Slug(answers=(422,), words="the document there is in another format than the feed", lasts=True),
    "header-limit": Slug(answers=(502,), words=_DAMAGED),
    "history-unfinished": Slug(words="not all of the publisher's older pages could be read"),
    "host-backoff": Slug(answers=(503,), words="the publisher asked to be left alone for a while"),
    "incomplete": Slug(answers=(502,), words=_DAMAGED),
    "internal": Slug(answers=(500,)),
    "invalid-url": Slug(answers=(400,), words=_NO_ADDRESS),
    "last-not-reached": Slug(words="the feed names a last page that its links do not lead to"),
    "limit": Slug(answers=(422,), words="this feed is larger than this proxy accepts"),
    "loop": Slug(words="the links between the documents lead in a circle"),
    "loop-detected": Slug(answers=(508,), words=_REFUSED, lasts=True),
    "malformed-json": Slug(answers=(422,), words=_UNREADABLE, lasts=True),
    "malformed-xml": Slug(answers=(422,), words=_UNREADABLE, lasts=True),
    "memento": Slug(words="only a web archive still has it", lasts=True),
    "memory-short": Slug(answers=(503,), words="this proxy had too little memory to read the document"),
    "method-not-allowed": Slug(answers=(405,)),
    "misdirected": Slug(answers=(421,)),
    "no-progress": Slug(words="many documents in a row brought no new entry"),
    "no-subscription-document": Slug(
        words="it is an old document, and does not say where the newest entries are"
    ),
    "no-such-entry": Slug(answers=(404,)),
    "no-such-intake": Slug(answers=(404,)),
    "no-such-page": Slug(answers=(404,)),
    "not-a-feed": Slug(answers=(422,), words="the document there is no feed", lasts=True),
    "not-a-sitemap": Slug(words="the file there is no sitemap", lasts=True),
    "not-an-index": Slug(words="the file there is no index for search", lasts=True),
    "not-found": Slug(answers=(404,)),
    "not-html": Slug(words="the document there is no web page", lasts=True),
    "not-opml": Slug(answers=(422,)),
    "origin-forbidden": Slug(answers=(502,), words=_FAILED, lasts=True),
    "overloaded": Slug(answers=(503,), words="this proxy had too much to do"),
    "page-stale": Slug(words="an older copy of this page came, which does not join the page before it"),
    "protocol-error": Slug(answers=(502,), words=_DAMAGED),
    "publisher-failed": Slug(answers=(502,), words=_FAILED),
    "publisher-status": Slug(answers=(502, 404, 410), words=_FAILED, lasts=True),
    "redirect-loop": Slug(answers=(502,), words=_AROUND, lasts=True),
    "robots": Slug(words="the publisher's robots.txt asks programs not to read it", lasts=True),
    "shutting-down": Slug(answers=(503,)),
    "signature-required": Slug(answers=(403,)),
    "storage-full": Slug(answers=(503,)),
    "store": Slug(answers=(500,)),
    "store-damaged": Slug(answers=(503,)),
    "store-unusable": Slug(),
    "timeout": Slug(answers=(504,), words=_SILENT),
    "tls-certificate": Slug(answers=(502,), words=_OUT_OF_REACH, lasts=True),
    "token-required": Slug(answers=(403,)),
    "too-costly": Slug(
        answers=(422,), words="the document needs more computing than this proxy allows for one", lasts=True
    ),
    "too-large": Slug(answers=(502, 413), words="the document is larger than this proxy accepts", lasts=True),
    "too-many-requests": Slug(answers=(429,)),
    "truncated": Slug(words="the document is damaged, so only entries that are whole in it can be here"),
    "unauthorized": Slug(answers=(401,)),
    "unavailable": Slug(),
    "unexpected-status": Slug(answers=(502,), words=_FAILED, lasts=True),
    "unknown-feed": Slug(answers=(404,)),
    "unsupported-encoding": Slug(answers=(422,), words=_UNREADABLE, lasts=True),
    "unsupported-format": Slug(answers=(422,), words=_UNREADABLE, lasts=True),
    "userinfo-not-allowed": Slug(answers=(400,), words=_NO_ADDRESS),
    "work-failed": Slug(answers=(500,), words="this proxy failed while it read the document"),
    "xml-limit": Slug(answers=(422,), words=_UNREADABLE, lasts=True),
}


def slug_in_words(slug: str) -> str:
    found = SLUGS.get(slug)
    return found.words if found is not None and found.words else slug


def failure_in_words(slug: str, status: int | None) -> str:
    """Return the words for a failure; `status` is the publisher's, and makes them more exact."""
    words = slug_in_words(slug)
    if status is not None and words == _FAILED:
        return f"the publisher responded with status {status}"
    # A publisher with a status was reached.
    return f"{words}: {_EXACTLY[slug]}" if slug in _EXACTLY else words


_EXACTLY: Final = {
    "connection-failed": "the connection failed",
    "dns-error": "no address was found for its name",
    "dns-timeout": "its name could not be looked up",
    "tls-certificate": "its certificate is not valid",
}


def may_pass(slug: str, status: int | None) -> bool:
    """Return whether a failure may pass by itself within minutes; `status` is the publisher's."""
    return not lasts(slug) if status is None else status in _TRANSIENT_STATUSES


_TRANSIENT_STATUSES: Final = frozenset({408, 429, *range(500, 600)})


def lasts(slug: str) -> bool:
    return slug in SLUGS and SLUGS[slug].lasts
