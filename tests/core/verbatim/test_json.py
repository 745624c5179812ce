"""Items of a JSON Feed keep their meaning in another one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.parse.test_jsonfeed import feed
from tests.cpu_time import cpu_limit
from wholefeed.core.jobs import compose
from wholefeed.core.model import MEMORY_URL, FeedDocument, HeadContext
from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.fragments import fragments_of
from wholefeed.core.verbatim.json import ITEM_URLS, MAX_CONTEXT_BYTES, JsonFragments, with_absolute_members

URL = "http://example.org/blog/feed.json"
AT = "http://example.org/blog/"


def sent(item: str, url: str = URL, **head: Any) -> str:
    """The only item of a JSON Feed, as sent."""
    members = json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "T", **head})[1:-1]
    document = parse(f'{{{members},"items":[{item}]}}'.encode(), url)
    return fragments_of(document).sent(0).decode()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"url" : "a"', f'"url" : "{AT}a"'),
        ('"external_url":"/a\\u0020b"', '"external_url":"http://example.org/a%20b"'),
        ('"image":"a.png","banner_image":"b.png"', f'"image":"{AT}a.png","banner_image":"{AT}b.png"'),
        (
            '"authors":[{"url":"/","avatar":"a"}]',
            f'"authors":[{{"url":"http://example.org/","avatar":"{AT}a"}}]',
        ),
        ('"author":{"url":"me"}', f'"author":{{"url":"{AT}me"}}'),
        (
            '"attachments":[{"url":"a.mp3"},{"x":[1],"url":"b.mp3"}]',
            f'"attachments":[{{"url":"{AT}a.mp3"}},{{"x":[1],"url":"{AT}b.mp3"}}]',
        ),
    ],
)
def test_a_url_of_an_item_is_written_absolute(written: str, expected: str) -> None:
    """R22: in each place of JSON Feed 1.1; the rest stays."""
    rest = '"id":"/1", "content_html":"<a href=\\"b\\">", "n":1.50'

    assert sent(f"{{{written},{rest}}}") == f"{{{expected},{rest}}}"
    assert sent(f"{{{rest},{written}}}") == f"{{{rest},{expected}}}"


@pytest.mark.parametrize(
    "written",
    [
        '"url":""',
        '"url":"http://a/"',
        '"url":null',
        '"url":["a"]',
        '"url":{"url":"a"}',
        '"url":"mailto:a"',
        '"url":"//:0"',
        '"url":"\\ud800"',
        '"_ext":{"url":"a"}',
        '"attachments":[["url","a"]]',
        '"content_text":"\\"url\\":\\"a\\""',
        '"attachments":[{"x":{"url":"a"}}]',
    ],
)
def test_what_is_no_url_or_means_nothing_stays_byte_for_byte(written: str) -> None:
    """R22: identities, extensions, and empty or unresolvable URLs."""
    item = f'{{"id":"1",{written}}}'

    assert sent(item) == item


def test_the_head_is_written_absolute() -> None:
    """R22: home page, icons and authors, also an author inherited by an item."""
    members = {"home_page_url": "/", "icon": "i.png", "favicon": "f.png", "authors": [{"url": "me"}]}
    body = {"version": "https://jsonfeed.org/version/1.1", "title": "a", **members, "items": []}
    head = json.loads(b"{%s}" % compose(parse(json.dumps(body).encode(), URL)).head.text)

    assert head["home_page_url"] == "http://example.org/"
    assert (head["icon"], head["favicon"]) == (f"{AT}i.png", f"{AT}f.png")
    assert head["authors"] == [{"url": f"{AT}me"}]
    assert json.loads(sent('{"id":"1"}', authors=[{"url": "me"}]))["authors"] == [{"url": f"{AT}me"}]


def test_copies_are_kept_with_absolute_urls() -> None:
    """R8, R22: nothing else stores a JSON Feed's base, and a memory document is none. An item grows by a
    bounded factor.
    """
    body = b'{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1","url":"a"}]}'
    assert fragments_of(parse(body, URL)).entry(0).decode() == f'{{"id":"1","url":"{AT}a"}}'
    assert fragments_of(parse(body, f"{MEMORY_URL}1")).entry(0) == b'{"id":"1","url":"a"}'

    item = '{"id":"1","attachments":[' + ",".join(['{"url":"a"}'] * 5000) + "]}"
    made = sent(item, f"http://example.org/{'b' * 1900}/")
    assert made.count("bbb/a") > 10
    assert len(made) < 6 * len(item)


@pytest.mark.parametrize("text", [b'"' * 1_000_000, b'"url":' + b" " * 1_000_000, b'"url":"' * 150_000])
def test_no_text_takes_longer_than_its_length(text: bytes) -> None:
    """R22: the search is linear."""
    with cpu_limit(0.5):
        with_absolute_members(b'{"a":%s}' % json.dumps(text.decode()).encode(), ITEM_URLS, URL)


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


def test_an_item_takes_its_feed_s_author_and_language_under_another_head() -> None:
    """R22; JSON Feed 1.1, "Items": the feed's apply to items without their own; empty or huge lists are not
    copied.
    """
    items: tuple[dict[str, object], ...] = (
        {"id": "a"},
        {"id": "b", "authors": BOB},
        {"id": "c", "language": "fr"},
        {},
    )
    own = {"authors": ANN, "author": ANN[0], "language": "de"}
    fragments, other = JsonFragments(read(*items, **own)), context(authors=BOB, language="en")
    assert fragments.needs_context
    found = [json.loads(fragments.entry(n, other)) for n in range(4)]
    by_ann = {"author": ANN[0], "authors": ANN}
    assert found[0] == {**by_ann, "language": "de", "id": "a"} == json.loads(fragments.entry(0))
    assert found[1] == {"language": "de", "id": "b", "authors": BOB}
    assert found[2] == {**by_ann, "id": "c", "language": "fr"}
    assert found[3] == {**by_ann, "language": "de"}
    assert json.loads(fragments.entry(0, fragments.context)) == {"id": "a"}
    assert context(authors=[]) == context(authors=[{"name": "x" * MAX_CONTEXT_BYTES}]) == HeadContext()
