"""The site that a URL belongs to: its registrable domain (rule R24).

The public suffix list comes with a package and is read from disk when it is first needed; no request is
ever made for it.
"""

from __future__ import annotations

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

from wholefeed.core.text.urls import UrlError, host_of

CACHED_SITES = 4096
"""Hosts are few and asked for often: each document of a chain asks for its own."""


@lru_cache(maxsize=1024)  # each refresh asks for the same
def site_of(url: str) -> str:
    """Return the registrable domain of an http(s) URL's host; the port plays no part.

    An IP address, a name of one label and a public suffix are sites of their own, and so is a URL that
    cannot be read: it is returned as it is.
    """
    try:
        return _site(host_of(url))
    except UrlError:
        return url


@lru_cache(maxsize=CACHED_SITES)
def _site(host: str) -> str:
    if ":" in host or host.rpartition(".")[2].isdecimal():
        return host
    return _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
