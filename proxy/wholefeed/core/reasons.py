"""Why a document is missing, in words for the people who read the feed (R16; PaceFeedState).

The slugs are those of `wholefeed.errors` and `wholefeed.core.notes`; several that mean the same to a
reader share their words. What stands in a feed must not churn, so the words hold no status and no count.
"""

from __future__ import annotations

from typing import Final

_WORDS: Final = {
    "the publisher answered with an error instead of the document": (
        "publisher-status",
        "publisher-failed",
        "unexpected-status",
        "origin-forbidden",
        "not-modified",
    ),
    "the publisher did not answer in time": ("timeout", "dns-timeout"),
    "the publisher could not be reached": ("connection-failed", "dns-error", "tls-certificate"),
    "the publisher asked to be left alone for a while": ("host-backoff",),
    "the publisher's answer broke off or was damaged": (
        "incomplete",
        "protocol-error",
        "content-coding",
        "empty",
    ),
    "the document is damaged towards its end, so only its whole entries are here": ("truncated",),
    "the publisher sends readers from one address to the next without end": (
        "redirect-loop",
        "too-many-redirects",
        "bad-redirect",
    ),
    "what stands there is no feed": ("not-a-feed",),
    "what stands there cannot be read": (
        "malformed-xml",
        "malformed-json",
        "unsupported-encoding",
        "dtd-forbidden",
        "xml-limit",
    ),
    "what stands there is in another format than the feed": ("format",),
    "the document is larger than this proxy takes": ("too-large",),
    "this feed is larger than this proxy takes": ("limit",),
    "this proxy does not go to that address": ("destination-forbidden", "downgrade", "loop-detected"),
    "the link to it is no web address": ("bad-link", "invalid-url", "ambiguous-host", "userinfo-not-allowed"),
    "it stands at another site and does not say that it belongs to this feed": ("cross-origin-unconfirmed",),
    "the links between the documents lead in a circle": ("loop",),
    "the documents go on without anything new in them": ("no-progress",),
    "it is an old document, and its newest entries could not be had": ("current-unavailable",),
    "it is an old document, and does not say where the newest entries are": ("no-subscription-document",),
}

_BY_SLUG: Final = {slug: words for words, slugs in _WORDS.items() for slug in slugs}


def in_words(slug: str) -> str:
    """Return the reason in words; the slug itself where there are none."""
    return _BY_SLUG.get(slug, slug)
