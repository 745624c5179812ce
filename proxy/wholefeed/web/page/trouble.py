"""Why a URL that a person has typed leads to no feed: what was wrong, and what to type instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wholefeed.core.slugs import in_words
from wholefeed.errors import DocumentError, UploadError, WholefeedError

_TYPE_AN_ADDRESS: Final = "Type an address such as example.org/blog or https://example.org/feed.xml."
_LOOK_FOR_ANOTHER: Final = "Look on the site for a link called RSS, Atom or Feed, and paste its address here."
_LATER: Final = "Try again in a minute; if it stays so, see whether a browser can open the address."
_TELL: Final = "Try again in a minute; if it stays so, tell whoever runs this proxy."
_CHECK_NAME: Final = "Check the spelling of the address, and whether a browser can open it."

_ADVICE: Final = {
    "invalid-url": _TYPE_AN_ADDRESS,
    "ambiguous-host": _TYPE_AN_ADDRESS,
    "bad-request": _TYPE_AN_ADDRESS,
    "userinfo-not-allowed": "Leave the user name and the password out of the address: feeds behind a login"
    " cannot be read.",
    "not-a-feed": _LOOK_FOR_ANOTHER,
    "unsupported-format": _LOOK_FOR_ANOTHER,
    "empty": _LOOK_FOR_ANOTHER,
    "publisher-status": "Check the spelling of the address; if a browser can open it, look there for a link"
    " called RSS, Atom or Feed.",
    "dns-error": _CHECK_NAME,
    "connection-failed": _CHECK_NAME,
    "tls-certificate": "The site's certificate is not valid, so nobody can say who answers. Tell the site, or"
    " see whether it has another address.",
    "destination-forbidden": "Private addresses and unusual ports are refused, unless whoever runs this proxy"
    " allows them.",
    "loop-detected": "Paste the address of the feed itself, not the one that this proxy made of it.",
    "unknown-feed": "Paste its address to begin with it.",
    "timeout": "It is still being looked for: try again in a moment.",
}

_NO_LIST: Final = "That file is no list of subscriptions"
_EXPORT: Final = "Go back, and choose the file that your reader exports its subscriptions to, as OPML."

_HEADINGS: Final = {
    "invalid-url": "That is no web address",
    "ambiguous-host": "That is no web address",
    "userinfo-not-allowed": "That address has a password in it",
    "not-a-feed": "There is no feed at that address",
    "timeout": "No answer yet",
    "unknown-feed": "That feed is not known here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What home shows beside the form."""

    status: int
    """Of the answer."""
    what: str
    """What was wrong."""
    advice: str
    """What to type, or to do, instead."""
    detail: str = ""
    """What was expected and what came."""

    @classmethod
    def of(cls, error: WholefeedError) -> Trouble:
        """Return what a person is told of an error."""
        words = in_words(error.slug)
        what = _HEADINGS.get(error.slug) or (words if " " in words else "that failed")
        advice = _ADVICE.get(error.slug, _LATER if isinstance(error, DocumentError) else _TELL)
        if isinstance(error, UploadError):  # of the same slugs as a publisher's documents
            what, advice = _NO_LIST, _EXPORT
        detail = error.args[0] if isinstance(error, DocumentError) else str(error)
        return cls(
            status=error.answer_status,
            what=_sentence(what),
            advice=advice,
            detail=_sentence(detail),
        )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
