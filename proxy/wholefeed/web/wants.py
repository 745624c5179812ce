"""What readers want of feeds: which representation, and how long they wait; read once for requests alike.

wants = Wants(config)
wants.of(asked, url, base, accept_encoding).representation
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wholefeed.config.tables import Config
from wholefeed.web.answer.answer import Representation
from wholefeed.web.answer.conditions import accepts_gzip
from wholefeed.web.asked import Asked
from wholefeed.web.request_target import own_url, page_url, read_view, read_wait, view_query

_MOST_KEPT: Final = 2048
_LONGEST_KEPT: Final = 600
"""Characters of what one is known by; a field that is longer comes from nobody who reads feeds."""


class Want(NamedTuple):
    """What one request wants."""

    representation: Representation
    may_be_whole: bool
    """Whether nothing is left out of a feed that is short enough."""
    wait_seconds: float


class Wants:
    """Belongs to the application.

    Args:
        config: The configuration.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kept: dict[tuple[str, str, str, str, str | None], Want] = {}

    def of(self, asked: Asked, url: str, base: str, accept_encoding: str | None) -> Want:
        """Return what a request wants.

        Args:
            asked: The request.
            url: Canonical URL of the feed.
            base: The proxy's URL, as `base_url` returns it.
            accept_encoding: The field of the request.

        Raises:
            RequestError: One of its options is not what it should be.
        """
        key = (asked.target, url, base, asked.mark, accept_encoding)
        want = self._kept.get(key)
        if want is None:
            want = self._read(asked, url, base, accept_encoding)
            if len(asked.target) + len(base) + len(accept_encoding or "") <= _LONGEST_KEPT:
                if len(self._kept) >= _MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = want
        return want

    def _read(self, asked: Asked, url: str, base: str, accept_encoding: str | None) -> Want:
        options, limits = asked.query.options, self._config.limits
        whole_url = own_url(base, url, asked.mark)
        representation = Representation(
            self_url=whole_url + view_query(options),
            whole_url=whole_url,
            is_gzip=accepts_gzip(accept_encoding),
            warns=self._config.history.warn_entry,
            page_url=page_url(base, url),
            view=read_view(options, limits.answer_bytes),
        )
        wait_seconds = read_wait(options, limits.respond_within_seconds)
        return Want(representation, representation.view.may_be_whole, wait_seconds)
