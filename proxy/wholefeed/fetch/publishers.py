"""Settings for single publishers, and which requests carry their secrets (rules A1 to A5). Pure.

A request carries secrets only if its URL and its feed belong to the publisher. Otherwise another host's feed
could show private documents.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from wholefeed.config.tables import PublisherConfig
from wholefeed.core.text.urls import UrlError, host_of
from wholefeed.fetch.guard import host_pattern, is_matched

_NO_FIELDS: Final[Mapping[str, str]] = {}


class Publishers:
    """The configured publishers; the first match counts."""

    def __init__(self, publishers: Sequence[PublisherConfig] = ()) -> None:
        self._patterns = tuple((host_pattern(each.host), each) for each in publishers)
        self._secrets = {id(each): _secrets(each) for each in publishers}

    def __iter__(self) -> Iterator[PublisherConfig]:
        return (each for _, each in self._patterns)

    def of_host(self, host: str) -> PublisherConfig | None:
        """Return a canonical host's settings; an IPv6 address without brackets."""
        return next((each for pattern, each in self._patterns if is_matched(host, pattern)), None)

    def of(self, url: str) -> PublisherConfig | None:
        if not self._patterns:
            return None
        try:
            return self.of_host(host_of(url))
        except UrlError:
            return None

    def private_of(self, url: str) -> PublisherConfig | None:
        """Return a URL's publisher if it is private (A4)."""
        own = self.of(url)
        return own if own is not None and own.is_private else None

    def are_apart(self, url: str, feed_url: str) -> bool:
        """Return whether a URL must not lead to a feed: only one is a private publisher's (A3)."""
        return self.private_of(url) is not self.private_of(feed_url)

    def secrets_for(self, url: str, *, feed_url: str, is_safe: bool) -> Mapping[str, str]:
        """Return the secret header fields for a request (A2).

        `feed_url` is empty for no feed. `is_safe` means TLS or `fetch.allow_networks`.
        """
        # Each hop of a redirect is judged by itself.
        own = self.private_of(url)
        if own is None or not is_safe or own is not self.private_of(feed_url):
            return _NO_FIELDS
        return self._secrets[id(own)]


NO_PUBLISHERS: Final = Publishers()


def _secrets(publisher: PublisherConfig) -> Mapping[str, str]:
    fields = dict(publisher.headers)
    if publisher.credentials:  # RFC 7617
        fields["Authorization"] = f"Basic {base64.b64encode(publisher.credentials.encode()).decode()}"
    return fields
