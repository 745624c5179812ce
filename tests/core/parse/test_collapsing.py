"""docs/faults.md row 89: documents of very many entries that are all the same."""

from __future__ import annotations

from time import process_time

import pytest

from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.model import MEMORY_URL, RDF_NS, RSS_10_NS
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import MAX_LIKE_ENTRIES, UNLIMITED

MANY = 249_000
SLOW_MACHINE = 60.0
"""Two seconds are meant, where nothing else runs."""


def json_feed(*items: str) -> bytes:
    return f'{{"version": "https://jsonfeed.org/version/1.1", "items": [{",".join(items)}]}}'.encode()


@pytest.mark.fault("89")
@pytest.mark.parametrize(
    "body",
    [
        json_feed(*["{}"] * MANY),
        atom("<entry/>" * MANY),
        rss("<item/>" * MANY),
        rss("<item><guid>1</guid></item>" * 40_000),
    ],
    ids=["json", "atom", "rss", "rss with an id"],
)
@pytest.mark.sample("rss", "atom")
def test_entries_that_are_all_the_same_collapse(body: bytes) -> None:
    """Row 89: the first many are kept, and no more; reading costs two seconds at most."""
    began = process_time()
    document = parse(body, URL)
    assert process_time() - began < 2 * SLOW_MACHINE
    assert len(document.entries) == MAX_LIKE_ENTRIES
    assert len(parse(body, URL, max_depth=UNLIMITED).entries) == MAX_LIKE_ENTRIES


@pytest.mark.fault("89")
def test_what_differs_is_kept() -> None:
    """Row 89; R9, R10: other identities, and other dates of one identity."""
    number = MAX_LIKE_ENTRIES + 10
    same = "<entry><id>1</id><updated>2026-01-01T00:00:00Z</updated></entry>" * number
    dated = "<entry><id>1</id><updated>2026-01-02T00:00:00Z</updated></entry>"
    about = "".join(f"<item rdf:about='urn:{n}'/>" for n in range(number))
    rdf = f"<rdf:RDF xmlns='{RSS_10_NS}' xmlns:rdf='{RDF_NS}'><channel/>{about}</rdf:RDF>"

    assert len(parse(atom(same, dated, same), URL).entries) == MAX_LIKE_ENTRIES + 1
    assert len(parse(rdf.encode(), URL).entries) == number
    assert len(parse(json_feed(*(f'{{"id":{n}}}' for n in range(number))), URL).entries) == number


@pytest.mark.fault("89")
def test_remembered_copies_do_not_collapse() -> None:
    """Row 89; R8: they are as many as were remembered."""
    number = MAX_LIKE_ENTRIES + 10
    for body in (atom("<entry/>" * number), json_feed(*["{}"] * number)):
        assert len(parse(body, MEMORY_URL + "1", max_depth=UNLIMITED).entries) == number
