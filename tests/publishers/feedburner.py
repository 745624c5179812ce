"""A stand-in for FeedBurner: at its own address a copy of a publisher's feed, which reads no parameters.

    async with Origin("127.0.0.2") as there:
        copy = FeedBurner(there, wordpress, "/feed/")
        copy.url                            # …/some
        await copy.poll()                   # as it does every half hour: until then the copy is as it was

Where this comes from: captures of copies (Ars Technica's, Rock Paper Shotgun's: the source's elements, with
`feedburner:info`, `atom10:link` and `feedburner:origLink` added), and "How FeedBurner Rewrites Links" by one
of its makers (Eric Lunt, burningdoor.com, 2005: links of entries are rewritten, and guids never).
"""

from __future__ import annotations

import hashlib
import re

import aiohttp

from tests.answers import Document, Request, Wire
from tests.feeds import own_ids
from tests.origin import Origin
from tests.publishers.front import Front

_NAMESPACE = b'xmlns:feedburner="http://rssnamespace.org/feedburner/ext/1.0"'


class FeedBurner:
    """One copy.

    Args:
        origin: The owner of its address.
        source: The publisher of the copied feed.
        path: Of that feed.
        name: Of the copy.
    """

    def __init__(self, origin: Origin, source: Front, path: str, name: str = "some") -> None:
        self.url = origin.url(f"/{name}")
        self._source_url = source.url + path
        self._body = b""
        origin.answer(f"/{name}", self)

    async def poll(self) -> None:
        """Copy the source's present feed."""
        async with aiohttp.ClientSession() as session, session.get(self._source_url) as reply:
            body = await reply.read()
        info = b'<feedburner:info %b uri="some"/>' % _NAMESPACE
        link = b'<atom10:link xmlns:atom10="http://www.w3.org/2005/Atom" rel="self" href="%b"/>'
        body = body.replace(b"<channel>", b"<channel>" + link % self.url.encode() + info, 1)
        head, *items = re.split(rb"(?=<item>)", body)
        self._body = head + b"".join(
            re.sub(rb"<link>([^<]*)</link>", self._link, item, count=1) for item in items
        )

    def say_generator(self, name: bytes) -> None:
        """Name another publisher in the head."""
        self._body = re.sub(rb"(?<=<generator>)[^<]*", name, self._body)

    def identities(self) -> set[str]:
        """Identities of the copy's entries."""
        return set(own_ids(self._body))

    def _link(self, found: re.Match[bytes]) -> bytes:
        number = hashlib.md5(found[1]).hexdigest()[:11]
        link = f"<link>{self.url}/~3/{number}/</link>".encode()
        return link + b"<feedburner:origLink %b>%b</feedburner:origLink>" % (_NAMESPACE, found[1])

    async def send(self, request: Request, wire: Wire) -> None:
        if not self._body:
            await self.poll()
        etag = f'"{hashlib.md5(self._body).hexdigest()}"'
        document = Document(
            body=self._body, headers=(("Content-Type", "text/xml; charset=UTF-8"),), etag=etag
        )
        await document.send(request, wire)
