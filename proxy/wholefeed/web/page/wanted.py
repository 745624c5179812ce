"""Whether a person's browser asks, or a program: what is answered with differs.

wants_page("text/html,application/xhtml+xml,*/*;q=0.8", "document")      # True: a browser opens it
wants_page("*/*", None)                                                  # False: curl
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_OTHERS: Final = frozenset({"text/plain", "application/json", "application/problem+json"})
"""What else we answer people's and programs' requests with."""


def is_browser(request: web.Request) -> bool:
    """Return whether a browser asks for something to show to a person."""
    return wants_page(request.headers.get("Accept", ""), request.headers.get("Sec-Fetch-Dest"))


def wants_page(accept: str, destination: str | None) -> bool:
    """Return whether a page is what is wanted (RFC 9110, 12.5.1).

    Args:
        accept: The Accept field. HTML must be named, and be preferred to plain text and to JSON: `*/*` is
            what programs send.
        destination: The Sec-Fetch-Dest field; None: it was not sent. Scripts, images and frames get no page.
    """
    if destination not in (None, "document"):
        return False
    ranked = sorted(_weighed(accept), key=lambda found: -found[1])  # stable: the first of equals comes first
    for media_type, weight in ranked:
        if weight > 0 and media_type in _PAGES:
            return True
        if media_type in _OTHERS:
            return False
    return False


def _weighed(accept: str) -> list[tuple[str, float]]:
    found = []
    for part in accept.split(","):
        media_type, *parameters = (each.strip().lower() for each in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        found.append((media_type, weight))
    return found
