"""What one publisher wants that others do not, and which requests bear it (rules A1 to A5). Pure.

    publishers = Publishers(config.publisher)
    publishers.of("https://feeds.example.org/a")    # its table of the configuration, or None
    publishers.secrets_for(url, feed_url=feed_url, is_safe=True)    # header fields that go with a request
    publishers.are_apart(url, feed_url)             # whether the one may not lead to the other's feed

Header fields and credentials are its *secrets*. A request bears them where both it and the feed that it is
for belong to the publisher, each hop of a redirect judged by itself: else a feed of another host could have
what is private fetched with them, and show it to its own readers.
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
    """Those of a configuration; the first that matches a host counts."""

    def __init__(self, publishers: Sequence[PublisherConfig] = ()) -> None:
        self._patterns = tuple((host_pattern(each.host), each) for each in publishers)
        self._secrets = {id(each): _secrets(each) for each in publishers}

    def __iter__(self) -> Iterator[PublisherConfig]:
        return (each for _, each in self._patterns)

    def of_host(self, host: str) -> PublisherConfig | None:
        """Return what is set for a host in its canonical form; an IPv6 address without brackets."""
        return next((each for pattern, each in self._patterns if is_matched(host, pattern)), None)

    def of(self, url: str) -> PublisherConfig | None:
        """Return what is set for the host of a URL, however it is written; None also where it is no URL."""
        if not self._patterns:
            return None
        try:
            return self.of_host(host_of(url))
        except UrlError:
            return None

    def private_of(self, url: str) -> PublisherConfig | None:
        """Return the publisher of a URL if what it gives is not for everybody (A4)."""
        own = self.of(url)
        return own if own is not None and own.is_private else None

    def are_apart(self, url: str, feed_url: str) -> bool:
        """Whether a URL may not lead to a feed: one of them belongs to a private publisher alone (A3)."""
        return self.private_of(url) is not self.private_of(feed_url)

    def secrets_for(self, url: str, *, feed_url: str, is_safe: bool) -> Mapping[str, str]:
        """Return the header fields that a request bears, of those that nobody else may see (A2).

        Args:
            url: That is asked, of this hop.
            feed_url: Of the feed that it is asked for; empty: of none.
            is_safe: Whether it goes by TLS, or into a network of `fetch.allow_networks`.
        """
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
