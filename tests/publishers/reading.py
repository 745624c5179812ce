"""A feed's content for tests of simulators: identities, and the targets of links."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import aiohttp
from defusedxml.ElementTree import fromstring


@dataclass(frozen=True)
class Page:
    """A received document."""

    status: int
    root: Element

    @property
    def identities(self) -> list[str]:
        """Identities of the entries, in order."""
        entries = [each for each in self.root.iter() if _local(each) in ("item", "entry")]
        return [
            next(each.text or "" for each in entry if _local(each) in ("guid", "id")) for entry in entries
        ]

    def link(self, relation: str) -> str | None:
        """Return the target of the head's first link of that relation, if any."""
        links = (each for each in self.root if _local(each) == "link" and each.get("rel") == relation)
        return next((link.get("href") for link in links), None)


async def read(url: str) -> Page:
    """Ask for a feed."""
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        return Page(reply.status, fromstring(await reply.text()))


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]
