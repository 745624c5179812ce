from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.documents import MAX_EARLY_BYTES, MAX_EARLY_TAGS, EarlyHead

LINK = "<link rel='prev-archive' href='/1'/>"
PADDING = "<x>" + "y" * 1024 + "</x>"


def feed(body: bytes, step: int, media_type: str = "") -> list[tuple[int, FeedDocument]]:
    """Feed in pieces; return what came, and after how many bytes."""
    early = EarlyHead(URL, media_type)
    answers = []
    for start in range(0, len(body), step):
        document = early.feed(body[start : start + step])
        if document is not None:
            answers.append((start + step, document))
    return answers


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_head_is_known_when_the_first_entry_begins(step: int, codec: str) -> None:
    """R0: an early link is a prediction. docs/design.md#the-walk."""
    declared = '<?xml version="1.0" encoding="windows-1252"?>' if codec == "cp1252" else ""
    text = atom(
        f"<title>é</title>{LINK}{PADDING}<fh:archive/>", "<entry><id>1</id>", prolog=declared
    ).decode()
    body = text.replace("</feed>", "").encode(codec)

    ((_, document),) = feed(body + b" " * 100, step)
    assert [link.target for link in document.head.links] == ["http://example.org/1"]
    assert [element.name for element in document.head.history] == ["archive"]
    assert document.head.title == "é"
    assert document.entries == ()
    child = document.head.children[1]
    assert document.text[child.start : child.end].decode() == LINK


def test_the_answer_comes_before_the_entry_ends() -> None:
    """R0: the older link is known as soon as the first entry begins, so that the next fetch starts early."""
    body = rss(PADDING, "<atom:link rel='prev-archive' href='/1'/>", "<item>" + "x" * 100_000)

    ((after, document),) = feed(body, 100)
    assert after < body.index(b"<item>") + 200
    assert document.head.links[0].target == "http://example.org/1"


def test_a_short_document_answers_too_late_or_not_at_all() -> None:
    """The encoding is settled on the first kilobyte; a body that small has arrived anyway."""
    assert feed(atom(LINK, "<entry/>"), 10) == []


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html>" + b" " * 2000,
        b"\x00\x01\x02" * 1000,
        atom(PADDING, "&nbsp;", "<entry/>"),
        atom(PADDING, LINK),
        atom(PADDING, "<a>" * 300, "<entry/>"),
        b"<!DOCTYPE x [<!ENTITY a 'b'>]>" + atom(PADDING, "<entry/>"),
        b"<?xml version='1.0' encoding='utf-7'?>" + atom(PADDING, "<entry/>"),
        b'<opml xmlns="x">' + b" " * 2000,
        atom(PADDING).replace(b"yyy", b"\xff\xff\xff") + b"<entry/>",
    ],
)
@pytest.mark.parametrize("step", [100, 1 << 20])
def test_on_any_trouble_it_never_answers(body: bytes, step: int) -> None:
    """R0: HTML, bad encodings, repairs and limits give no early link: a wrong guess would cost a request."""
    assert feed(body, step) == []


@pytest.mark.parametrize("step", [4096, 1 << 22])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_it_gives_up_on_a_head_that_is_too_long(step: int, codec: str) -> None:
    """R0: an endless head is not kept in memory in the hope of an early link."""
    head = "<x/>" * (MAX_EARLY_BYTES // 4 + 1024)
    body = atom(head, LINK, "<entry/>").decode().encode(codec)

    assert feed(body, step) == []


@pytest.mark.parametrize(("tags", "answers"), [(MAX_EARLY_TAGS // 2, 1), (3 * MAX_EARLY_TAGS, 0)])
@pytest.mark.parametrize("step", [1000, 1 << 20])
@pytest.mark.fault("87")
def test_it_gives_up_on_a_head_of_many_tags(step: int, tags: int, answers: int) -> None:
    """R0; row 87: they are read while others wait, and are little on the wire."""
    body = atom(PADDING, LINK, "<link href='a'/>" * tags, "<entry/>")
    assert len(body) < MAX_EARLY_BYTES

    assert len(feed(body, step)) == answers


def test_it_answers_once_and_ignores_the_rest() -> None:
    """R0: one document predicts one link, and whatever follows it cannot make the prediction fail."""
    early = EarlyHead(URL, "")
    assert early.feed(atom(PADDING, LINK, "<entry/>", PADDING, "<entry/>")) is not None
    assert early.feed(b"\xff<<<") is None


@given(st.lists(st.binary(max_size=600), max_size=6), st.text(max_size=20))
def test_nothing_makes_it_raise(chunks: list[bytes], media_type: str) -> None:
    """R0: no bytes and no media type make the early look at a head break the fetch itself."""
    early = EarlyHead(URL, f"text/xml; charset={media_type}")
    for chunk in (*chunks, b"<rss>", *chunks, PADDING.encode()):
        early.feed(chunk)
