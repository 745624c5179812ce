"""What a feed calls itself, read from its head as it goes out."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.errors import ParseError
from wholefeed.core.parse.limits import UNLIMITED
from wholefeed.core.terms import Family
from wholefeed.core.text.urls import is_http, resolve
from wholefeed.core.verbatim.well_known import ALL_PREFIXES


class Heading(NamedTuple):
    """Title and site; empty where the head does not tell them."""

    title: str
    """On one line."""
    site: str
    """The URL of the page that the feed is about."""


def heading_of(family: Family, version: str, head: bytes, via_url: str) -> Heading:
    """Return what a published feed calls itself.

    Args:
        family: As published.
        version: Of the format, as published.
        head: As `compose_head` made it.
        via_url: Where the publication came from.
    """
    prologue = compose_prologue(
        family,
        head,
        prefixes=ALL_PREFIXES,
        address=Address(via_url, via_url),
        is_complete=False,
        version=version,
    )
    try:
        found = parse(prologue + EPILOGUE[family], via_url, max_depth=UNLIMITED).head
    except ParseError:
        return Heading("", "")
    sites = [link.target for link in found.links if link.relation == "alternate" and link.target]
    if family in (Family.RSS, Family.JSON) and found.site_id:
        with suppress(ValueError):  # the channel's link is none: the title is one all the same
            sites.insert(0, resolve(found.scope.base, found.site_id))
    return Heading(" ".join(found.title.split()), next(filter(is_http, sites), ""))
