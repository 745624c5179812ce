"""wholefeed.core.adapters.base: marks of the publisher in a document."""

from __future__ import annotations

import pytest

from wholefeed.core.adapters.base import Marks, marks_of
from wholefeed.core.parse.documents import parse

RSS = b'<rss version="2.0"><channel><title>t</title>%s%s</channel></rss>'
ATOM = b'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>t</title>%s%s</feed>'
RDF = (
    b'<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    b'xmlns:admin="http://webns.net/mvcb/"><channel rdf:about="http://a.test/">%s</channel>%s</rdf:RDF>'
)


def marks(body: bytes) -> Marks:
    return marks_of(parse(body, "http://a.test/feed"))


@pytest.mark.parametrize(
    ("body", "generator"),
    [
        (RSS % (b"<generator>https://wordpress.org/?v=6.6</generator>", b""), "https://wordpress.org/?v=6.6"),
        (RSS % (b"<generator> <![CDATA[Blog\n Engine]]> </generator>", b""), "Blog Engine"),
        (
            ATOM % (b'<generator uri="https://wordpress.org/" version="6">WordPress</generator>', b""),
            "https://wordpress.org/ WordPress",
        ),
        (RDF % (b'<admin:generatorAgent rdf:resource="http://a.test/?v=6"/>', b""), "http://a.test/?v=6"),
        (RSS % (b"<generator>" + b"x" * 5000 + b"</generator>", b""), ""),
        (RSS % (b"", b"<item><generator>inside</generator></item>"), ""),
    ],
)  # fmt: skip
def test_the_generator_is_told_in_one_line(body: bytes, generator: str) -> None:
    """R26: address and name from the head's generator, in every format."""
    assert marks(body).generator == generator


@pytest.mark.parametrize(
    ("body", "last_id"),
    [
        (RSS % (b"", b"<item><guid>1</guid></item><item><guid isPermaLink='false'> 2 </guid></item>"), "2"),
        (RSS % (b"", b"<item><guid><![CDATA[http://a.test/?p=2]]></guid></item>"), "http://a.test/?p=2"),
        (ATOM % (b"", b"<entry><title>t</title><id>tag:a,2020:9</id></entry>"), "tag:a,2020:9"),
        (RDF % (b"", b"<item rdf:about='http://a.test/9'><title>t</title></item>"), "http://a.test/9"),
        (RSS % (b"", b"<item><title>none</title></item>"), ""),
        (RSS % (b"", b""), ""),
    ],
)
def test_the_last_entry_is_known_by_its_id(body: bytes, last_id: str) -> None:
    """R28: some publishers' pages begin after the entry with this id."""
    assert marks(body).last_id == last_id


def test_comments_are_known_by_their_ids() -> None:
    """R26: a feed of comments is left alone; a post may mention comments."""
    comment = b"<item><guid>http://a.test/p#comment-7</guid></item>"
    post = (
        b"<item><guid>http://a.test/p</guid><description>see http://a.test/p#comment-7</description></item>"
    )
    assert marks(RSS % (b"", comment)).has_comments
    assert not marks(RSS % (b"", post)).has_comments


@pytest.mark.parametrize(
    ("element", "is_burned"),
    [
        (b'<f:info xmlns:f="http://rssnamespace.org/feedburner/ext/1.0" uri="some"/>', True),
        (b'<f:info xmlns:f="http://a.test/feedburner" uri="some"/>', False),
        (b"<item><guid>1</guid></item>", False),
    ],
)
def test_a_copy_of_feedburner_s_is_known_by_its_element(element: bytes, is_burned: bool) -> None:
    """R26: in FeedBurner's namespace, in the head."""
    assert marks(RSS % (element, b"")).is_burned is is_burned


@pytest.mark.parametrize(
    ("text", "total"),
    [(b"420", 420), (b" 7\n", 7), (b"0", 0), (b"", None), (b"-1", None), (b"many", None), (b"1" * 10, None)],
)
def test_what_a_publisher_claims_to_have_is_a_number(text: bytes, total: int | None) -> None:
    """R31: in any of OpenSearch's namespaces."""
    head = b'<o:totalResults xmlns:o="http://a9.com/-/spec/opensearchrss/1.0/">%b</o:totalResults>' % text
    assert marks(RSS % (head, b"")).total == total


def test_what_is_kept_comes_back() -> None:
    """Marks are stored with their document, without empty ones."""
    some = Marks(generator="g", last_id="7", has_comments=True, is_burned=True, total=7)
    assert Marks.read(some.written()) == some
    assert Marks().written() == "{}"


@pytest.mark.parametrize("size", [10, 20_000, 1_000_000])
def test_an_id_behind_the_content_is_found(size: int) -> None:
    """R28: some publishers write the guid last, so both ends of a long entry are read."""
    entry = b"<item><description>" + b"x" * size + b"</description><guid>7</guid></item>"
    assert marks(RSS % (b"", entry)).last_id == "7"
