"""What to type next, for errors whose own words do not say it: they are those of the HTTP interface, too."""

from __future__ import annotations

from typing import Final

from wholefeed.errors import WholefeedError

_HINTS: Final = {
    "unknown-feed": "`wholefeed list` shows the feeds that are known",
    "not-a-feed": "name the feed itself, or a page that announces it in a link",
    "dns-error": "is it spelt right, and is there a network?",
    "unauthorized": "is this command's configuration the proxy's (server.access_token, store.path)?",
}
"""By slug."""


def with_hint(error: WholefeedError) -> str:
    """Return the message of an error, and what can be done about it where that is known; one line."""
    hint = _HINTS.get(error.slug)
    return f"{error}; {hint}" if hint else str(error)
