"""wholefeed.core.jobs: one reading says all that is to be known of a document."""

from __future__ import annotations

import hashlib

import pytest

from tests.workers.samples import BODIES, a_sender
from wholefeed.core.facts import CopyDates, Stored
from wholefeed.core.jobs import Part, compose, read_again, read_document, render
from wholefeed.core.links import classify
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.walk.chain import Span

DEPTH = 256


@pytest.mark.parametrize("name", BODIES)
def test_a_document_is_told_as_the_parser_reads_it(name: str) -> None:
    """Nothing that the walk or the store wants to know is lost or changed on the way."""
    body, sender = BODIES[name], a_sender(name)
    document = parse(body, sender.url, sender.media_type)
    read = read_document(body, sender, max_depth=DEPTH)
    facts, head = read.facts, document.head
    assert (facts.family, facts.version, facts.site_id) == (document.family, document.version, head.site_id)
    assert (facts.updated_at, facts.tombstones, facts.notes) == (
        head.updated_at,
        head.tombstones,
        document.notes,
    )
    assert [(each.identity, each.updated_at, each.order_at, each.size) for each in facts.entries] == [
        (each.identity, each.updated_at, each.order_at, each.end - each.start) for each in document.entries
    ]
    assert read.navigation == classify(document, sender.links)
    assert read.digest == hashlib.sha256(body).digest()
    assert read.composed is None
    assert read.rendered is None
    again = read_again(Stored(body, sender.url, sender.media_type))
    assert again == facts


@pytest.mark.parametrize("name", BODIES)
def test_what_is_rendered_on_arrival_is_what_is_rendered_from_the_store(name: str) -> None:
    """So nothing that was read is read once more to be sent."""
    body, sender = BODIES[name], a_sender(name)
    stored = Stored(body, sender.url, sender.media_type)
    composed = compose(stored)
    read = read_document(body, sender, max_depth=DEPTH, is_subscription=True)
    assert read.composed == composed
    everything = range(len(read.facts.entries))
    assert read.rendered == render([Part(stored, everything)], composed.style)
    archive = read_document(body, sender, max_depth=DEPTH, style=composed.style)
    assert archive.rendered == read.rendered
    assert archive.composed is None


def test_a_document_of_another_family_is_not_rendered() -> None:
    """R23: it does not join the feed, and has no place in its segments."""
    style = compose(Stored(BODIES["atom"], "http://a.test/", "")).style
    assert read_document(BODIES["rss"], a_sender(), max_depth=DEPTH, style=style).rendered is None


def test_instants_far_in_the_future_do_not_count_for_the_span() -> None:
    """R10: a date of more than a day after the fetch is none."""
    body = BODIES["atom"]
    at = [each.order_at for each in read_document(body, a_sender(), max_depth=DEPTH).facts.entries]
    known = sorted(each for each in at if each is not None)
    assert read_document(body, a_sender(), max_depth=DEPTH).span == Span(known[0], known[-1])
    early = a_sender(fetched_at=known[0] - 3 * 86400)
    assert read_document(body, early, max_depth=DEPTH).span is None


def test_the_dates_of_copies_count_where_there_is_one_for_each() -> None:
    """A newer parser may find another number of entries in a memory document than were written into it."""
    stored = Stored(BODIES["atom"], "http://a.test/", "")
    dates = [CopyDates(float(n), 9.0, None, None) for n in range(3)]
    assert [each.updated_at for each in read_again(stored, dates).entries] == [0.0, 1.0, 2.0]
    assert read_again(stored, dates[:2]) == read_again(stored)


def test_what_is_no_feed_is_refused_as_the_parser_does() -> None:
    """With its slug; a stored body knows no limit of depth."""
    deep = BODIES["atom"].replace(b"<entry>", b"<entry>" + b"<d>" * 300 + b"</d>" * 300, 1)
    with pytest.raises(ParseError) as caught:
        read_document(deep, a_sender(), max_depth=DEPTH)
    assert caught.value.slug == "xml-limit"
    assert len(read_again(Stored(deep, "http://a.test/", "")).entries) == 3
    with pytest.raises(ParseError) as caught:
        read_document(b"<html/>", a_sender(), max_depth=DEPTH)
    assert caught.value.slug == "not-a-feed"
