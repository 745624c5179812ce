"""The URL to subscribe to: a feed's URL at the proxy, with what lets a reader in.

    proxied_url("https://feeds.example", "https://example.org/feed.atom", config.server)
    # https://feeds.example/feed?url=https%3A%2F%2Fexample.org%2Ffeed.atom&token=…
    proxied_url(base, url, config.server, {"answer_bytes": "5000000"})

`server` must be that of the running proxy: where the access token was made at its first start, it stands in a
file, not in the configuration (`wholefeed.cli.access_token.known_token`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from wholefeed.config.tables import ServerConfig
from wholefeed.server.signing import sign
from wholefeed.web.request_target import feed_url, own_url, view_query

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def proxied_url(base: str, url: str, server: ServerConfig, options: Mapping[str, str] = _NONE) -> str:
    """Return the URL by which a reader subscribes to a feed.

    It holds the access token where there is one, else a signature where there are signing keys: a signature
    opens one feed alone, but a reader that knows the token can also ask for `/status` and the pages.

    Args:
        base: Scheme and authority, and the path of the proxy where it has one, without a final slash.
        url: The feed's URL. It stands there as it is given, blanks and all, so that it can be had back.
        server: Of the running proxy.
        options: Of the view: `limit`, `since` and `answer_bytes`, as they stand in a query.

    Raises:
        InvalidUrlError: It is none that can be fetched.
    """
    token, keys = server.access_token, server.signing_keys
    canonical = feed_url(url)
    mark = sign(canonical, keys) if keys and not token else ""
    secret = f"&token={quote(token, safe='')}" if token else ""
    return own_url(base, url, mark) + secret + view_query(options)
