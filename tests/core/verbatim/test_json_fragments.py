from __future__ import annotations

import json

from tests.core.parse.json.test_jsonfeed import feed
from wholefeed.core.model import FeedDocument, HeadContext
from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.json import MAX_CONTEXT_BYTES, JsonFragments

ANN = [{"name": "Ann"}]
BOB = [{"name": "Bob"}]


def read(*items: object, **head: object) -> FeedDocument:
    return parse(feed(*items, **head), "http://o.test/")


def context(**head: object) -> HeadContext:
    return JsonFragments(read(**head)).context


def test_an_item_that_needs_nothing_stays_byte_for_byte() -> None:
    """R22."""
    body = b'{"version":"https://jsonfeed.org/version/1.1","items":[{ "id" : 1.0,"x":"\\u00e9" }]}'
    fragments = JsonFragments(parse(body, "http://o.test/"))
    assert fragments.entry(0) == fragments.entry(0, HeadContext()) == b'{ "id" : 1.0,"x":"\\u00e9" }'
    assert not fragments.needs_context


def test_an_item_without_an_author_takes_its_feed_s_under_another_head() -> None:
    """JSON Feed 1.1, "Items": the feed's authors are those of the items that name none."""
    fragments = JsonFragments(read({"id": "a"}, {"id": "b", "authors": BOB}, {}, authors=ANN, author=ANN[0]))
    assert fragments.needs_context
    other = context(authors=BOB)
    assert json.loads(fragments.entry(0, other)) == {"author": ANN[0], "authors": ANN, "id": "a"}
    assert json.loads(fragments.entry(1, other)) == {"id": "b", "authors": BOB}
    assert json.loads(fragments.entry(2, other)) == {"author": ANN[0], "authors": ANN}
    assert json.loads(fragments.entry(0, fragments.context)) == {"id": "a"}


def test_an_item_without_a_language_takes_its_feed_s_under_another_head() -> None:
    """R22: a JSON item keeps its feed's language when the answer's head says another one."""
    fragments = JsonFragments(read({"id": "a"}, {"id": "b", "language": "fr"}, language="de"))
    assert fragments.needs_context
    assert json.loads(fragments.entry(0, context(language="en"))) == {"language": "de", "id": "a"}
    assert json.loads(fragments.entry(0, context(language="de"))) == {"id": "a"}
    assert json.loads(fragments.entry(0)) == {"language": "de", "id": "a"}
    assert json.loads(fragments.entry(1)) == {"id": "b", "language": "fr"}


def test_authors_that_say_nothing_or_too_much_are_not_repeated() -> None:
    """R22: an empty or huge list of authors is not copied into every item."""
    assert context(authors=[]) == HeadContext()
    assert context(authors=[{"name": "x" * MAX_CONTEXT_BYTES}]) == HeadContext()
