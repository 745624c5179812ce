"""Small feeds of other projects, cut into chains and joined: feedparser shows whether they change.

`python -m pytest tests/core/compose/test_corpus.py --exhaustive` takes every one.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import pytest

from tests.chains import CORPUS, NotCuttableError, Part, corpus_feeds, cut, differences, seen
from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue
from wholefeed.core.jobs import compose
from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.fragments import Fragments, prefixes_in

XML: Final = "application/xml"
PROXY_URL: Final = "http://proxy.test/feed"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real feeds is absent: {CORPUS}")


def test_a_reader_sees_every_conformance_case_as_in_its_own_document(step: int) -> None:
    """R11, R22: other projects' small cases, cut, made self-contained and joined."""
    found: list[tuple[str, str]] = []
    count = 0
    for name, body in islice(corpus_feeds("conf"), 0, None, step):
        try:
            parts = cut(body, lambda place: f"http://site.test/{'older/' * place}feed.xml")
        except NotCuttableError:
            continue
        after = seen(joined(parts), PROXY_URL, f"{XML}; charset=utf-8")
        before = [entry for part in parts for entry in seen(part.body, part.url, XML)]
        found += [(name, why) for why in differences(before, after)]
        count += 1
    assert found == []
    assert count > 1000 / step


def joined(parts: list[Part]) -> bytes:
    made = [Fragments(parse(part.body, part.url, XML)) for part in parts]
    context, subscription = made[0].context, made[0].document
    entries = b"".join(each.sent(n, context) for each in made for n in range(len(each.document.entries)))
    head = compose(subscription).head
    prologue = compose_prologue(
        subscription.family,
        head.text,
        prefixes=head.prefixes | prefixes_in(entries),
        address=Address(PROXY_URL, parts[0].url),
        is_complete=True,
    )
    return prologue + entries + EPILOGUE[subscription.family]
