"""How a feed gets into a reader.

links = await make_reader_links(request, url, is_json=True, now=now)
links.services[0]       # AddingLink("Feedbin", "https://feedbin.com/?subscribe=http%3A%2F%2F…")
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from aiohttp import web
from markupsafe import Markup

from wholefeed.core.readers import READERS, Reach, ReaderLimits, adding_url, reach_of
from wholefeed.web.keys import ASKED, CONFIG
from wholefeed.web.list_rewriting import proxied_url
from wholefeed.web.request import ATOM, base_url


class AddingLink(NamedTuple):
    reader: str
    url: str
    """Adds the feed; for a reader that people host, a path below its address."""
    paths: str = ""
    """For such a reader, the paths that people copy with its address, with blanks between them."""


class ReaderLinks(NamedTuple):
    address: str
    base: str
    reach: Reach
    services: tuple[AddingLink, ...]
    self_hosted: tuple[AddingLink, ...]
    variants: tuple[tuple[ReaderLimits, str], ...]
    """Each reader with an address of its own; empty: the usual one."""
    code: Markup
    """The address as a QR code; empty: it is too long, or no phone can reach the proxy."""
    is_json: bool
    as_atom: bool

    @property
    def is_reached(self) -> bool:
        """Whether services on the internet may reach the proxy."""
        return self.reach is Reach.INTERNET

    @property
    def is_here_alone(self) -> bool:
        """Whether only programs on this machine reach the proxy."""
        return self.reach is Reach.MACHINE


async def make_reader_links(request: web.Request, url: str, *, is_json: bool, now: float) -> ReaderLinks:
    """Return the links of a known feed; `now` is epoch seconds."""
    base, chosen = base_url(request, request[ASKED]), chosen_format(request, is_json=is_json)
    address, reach = reader_url(request, url, chosen), reach_of(base)
    variants = list[tuple[ReaderLimits, str]]()
    services, self_hosted = list[AddingLink](), list[AddingLink]()
    for reader in READERS:
        added = reader.parameters(now, is_json=is_json)
        own = reader_url(request, url, {**chosen, **added}) if added else ""
        variants.append((reader, own if own != address else ""))
        if reader.adds_at:
            link = AddingLink(reader.name, adding_url(reader, own or address), " ".join(reader.own_paths))
            (self_hosted if reader.is_self_hosted else services).append(link)
    is_coded = reach is not Reach.MACHINE and len(address) <= _LONGEST_CODED
    return ReaderLinks(
        address=address,
        base=base,
        reach=reach,
        services=tuple(services),
        self_hosted=tuple(self_hosted),
        variants=tuple(variants),
        code=await asyncio.to_thread(draw_code, address) if is_coded else Markup(),
        is_json=is_json,
        as_atom=bool(chosen),
    )


def chosen_format(request: web.Request, *, is_json: bool) -> dict[str, str]:
    """Return the parameter that the page's URL has (F1)."""
    return {"as": ATOM} if is_json and request[ASKED].query.options.get("as") == ATOM else {}


def reader_url(request: web.Request, url: str, options: Mapping[str, str]) -> str:
    """Return the address with the token or a signature."""
    server = request.app[CONFIG].server
    return proxied_url(base_url(request, request[ASKED]), url, server, options)


# QR codes

_LONGEST_CODED: Final = 600
"""Characters: a code of them has 93 modules a side with its border, at least three pixels each."""


@lru_cache(maxsize=64)
def draw_code(text: str) -> Markup:
    """Return a QR code (ISO/IEC 18004) as SVG; takes up to 0.1 s."""
    from segno import make_qr  # noqa: PLC0415 - 10 ms of every start

    code = make_qr(text, error="l")
    return Markup(code.svg_inline(omitsize=True, svgclass=None, lineclass=None))  # noqa: S704 - it holds no text
