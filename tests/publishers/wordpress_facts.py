"""Facts of WordPress's answers that are equal on every site, for comparison with a simulator.

`tests/data/wordpress/recorded_6.6.json` holds them for answers of WordPress 6.6-RC3, recorded on 2026-11-21,
on a site of 355 posts. The first 300 are called "Post 1" … and dated as those of `tests.publishers.blog`, one
has the highest ID and an old date, and "Post 120" was edited last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

_PREFIXES: Final = {
    "http://www.w3.org/2005/Atom": "atom",
    "http://purl.org/rss/1.0/modules/content/": "content",
    "http://wellformedweb.org/CommentAPI/": "wfw",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/rss/1.0/modules/syndication/": "sy",
    "http://purl.org/rss/1.0/modules/slash/": "slash",
    "http://purl.org/rss/1.0/": "rss",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://webns.net/mvcb/": "admin",
    "http://purl.org/syndication/thread/1.0": "thr",
}
_OF_THE_SERVER: Final = {"host", "date", "connection", "x-powered-by", "content-length", "server"}
"""Header fields outside WordPress's control."""
_TOLD: Final = {
    "content-type",
    "link",
    "location",
    "expires",
    "cache-control",
    "x-wp-total",
    "x-wp-totalpages",
}
"""Header fields with compared values; of repeated ones the last."""


def facts_of(
    target: str, status: int, headers: Iterable[tuple[str, str]], body: str, *, site: str, name: str
) -> dict[str, object]:
    """Return the facts of an answer, with `{site}` for the site's URL and `{name}` for its title."""
    fields = [(field, value) for field, value in headers if field.lower() not in _OF_THE_SERVER]
    facts: dict[str, object] = {"target": target, "status": status, "fields": [field for field, _ in fields]}
    facts |= {
        field.lower(): value.replace(site, "{site}") for field, value in fields if field.lower() in _TOLD
    }
    if body.startswith("<?xml"):
        facts |= _facts_of_feed(fromstring(body), site=site, name=name)
    return facts


def _facts_of_feed(root: Element, *, site: str, name: str) -> dict[str, object]:
    head = root if root.tag.endswith("feed") else next(iter(root))
    items = [each for each in root.iter() if _local(each) in ("item", "entry")]
    titles = [_title(item) for item in items]
    found = (re.fullmatch(r"Post (\d+)", title) for title in titles)
    own = [each.get("href", "") for each in head if _local(each) == "link" and each.get("rel") == "self"]
    return {
        "head": [_name(each) for each in head if _local(each) not in ("item", "entry")],
        "item": [name for name, _ in groupby(map(_name, items[0]))] if items else [],
        "items": len(items),
        "title": _title(head).replace(name, "{name}"),
        **({"self": own[0].replace(site, "{site}")} if own else {}),
        "posts": [int(each[1]) if each else None for each in found],
    }


def _title(element: Element) -> str:
    return next((each.text or "").strip() for each in element if _local(each) == "title")


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _name(element: Element) -> str:
    namespace, _, local = element.tag.removeprefix("{").rpartition("}")
    return f"{_PREFIXES[namespace]}:{local}" if namespace else local
