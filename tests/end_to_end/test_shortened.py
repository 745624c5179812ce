"""A publisher shortens full texts (R10): they stay, unless it declares a revision.

The blog is a WordPress of 80 words a post; an option turns its feeds into excerpts of 55.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.aged import Aged, copied
from tests.feeds import own_ids, stamp, texts
from tests.origin import Origin
from tests.postgres import on_both
from tests.publishers.collected import DAY, Feed
from tests.publishers.wordpress import WordPress
from tests.running import Clock, Proxy, a_config, running
from wholefeed.core.model import ATOM_NS

WORDS = [f"word{number}" for number in range(80)]
FULL = " ".join(WORDS)
CUT = " ".join(WORDS[:20]) + " [\u2026]"
SUMMARY = " ".join(WORDS[:20])


def a_blog(origin: Origin, posts: int = 45) -> WordPress:
    """Publish posts whose last word the excerpt lacks."""
    blog = WordPress(origin, posts=posts)
    for post in blog.posts:
        post.content = f"{FULL} end{post.id}"
    return blog


def lacking(blog: WordPress, body: bytes, form: str) -> list[int]:
    found = texts(body)
    return [post.id for post in blog.posts if f"end{post.id}" not in found[blog.identity(post, form)]]


async def turned_to_excerpts(feed: Feed) -> None:
    """Serve all posts in full; then excerpts, and a bulk edit that causes a full walk."""
    assert lacking(feed.blog, (await feed.whole()).body, feed.form) == []
    feed.blog.excerpts = True
    feed.blog.bulk_edit(feed.blog.posts, tags=("sorted",))


@pytest.mark.fault("124")
@pytest.mark.parametrize("form", ["rss2", "rdf"])
async def test_a_blog_that_turns_to_excerpts_takes_no_full_text_away(
    proxy: Proxy, origin: Origin, form: str
) -> None:
    """R10, R29; row 124: after a bulk edit all pages are fetched; new posts have excerpts only."""
    feed = Feed(proxy, a_blog(origin), form)
    await turned_to_excerpts(feed)
    new = feed.blog.add(content=f"{FULL} never")
    for _ in range(3):
        reply = await feed.later()
        assert (reply.state, lacking(feed.blog, reply.body, form)) == ("collected", [new.id])
        assert len(own_ids(reply.body)) == len(feed.blog.posts)


@on_both
@pytest.mark.fault("124")
async def test_no_insisting_makes_excerpts_of_full_texts_but_forgetting(proxy: Proxy, origin: Origin) -> None:
    """R10, R14; row 124: `full=1` fetches every page anew, and reports that they are no better than
    before."""
    feed = Feed(proxy, a_blog(origin))
    await turned_to_excerpts(feed)
    reply = await proxy.refreshed(feed.url, full=True)
    assert (reply.state, lacking(feed.blog, reply.body, feed.form)) == ("collected", [])
    await proxy.ask("DELETE", "/feed", params={"url": feed.url})
    assert len(lacking(feed.blog, (await feed.whole()).body, feed.form)) == 45


async def test_excerpts_that_are_there_all_the_time_are_what_there_is(proxy: Proxy, origin: Origin) -> None:
    """R10: if no copy is full, an edit shows as ever, without a note."""
    feed = Feed(proxy, a_blog(origin))
    feed.blog.excerpts = True
    await feed.whole()
    feed.blog.edit(feed.blog.posts[7], content=f"New. {FULL}")
    reply = await feed.later()
    assert texts(reply.body)[feed.blog.identity(feed.blog.posts[7])].startswith("New. ")
    assert await remarks(proxy, feed.url) == []


async def remarks(proxy: Proxy, url: str) -> list[dict[str, str]]:
    return [each for each in (await proxy.status(url))["notes"] if each["code"] == "TextsShortened"]


# One document, in formats with and without full content


Texts = dict[str, str]


def written(entry: Callable[[str, str], str], around: Callable[[str], str]) -> Callable[[Texts, int], bytes]:
    return lambda said, updated: (
        around("".join(entry(name, text) for name, text in said.items()))
        .replace("UPDATED", str(updated))
        .encode()
    )


def an_rss(entries: str) -> str:
    return (
        '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>A</title>'
        f"<link>http://site.test/</link><description>UPDATED</description>{entries}</channel></rss>"
    )


def an_atom(entries: str) -> str:
    return (
        f'<feed xmlns="{ATOM_NS}"><title>A</title><id>urn:feed</id><subtitle>UPDATED</subtitle>'
        f"<updated>{stamp(1)}</updated><author><name>Ann</name></author>{entries}</feed>"
    )


def a_json(entries: str) -> str:
    return (
        '{"version":"https://jsonfeed.org/version/1.1","title":"A","description":"UPDATED","items":['
        f"{entries.rstrip(',')}]}}"
    )


def rss_item(name: str, inside: str) -> str:
    return f"<item><title>{name}</title><guid isPermaLink='false'>urn:{name}</guid>{inside}</item>"


def atom_entry(name: str, inside: str, updated: int = 1) -> str:
    return (
        f"<entry><id>urn:{name}</id><title>{name}</title><updated>{stamp(updated)}</updated>"
        f"<link href='http://site.test/{name}'/>{inside}</entry>"
    )


def encoded(name: str, text: str) -> str:
    is_full = text == FULL
    more = f"<content:encoded><![CDATA[<p>{text}</p>]]></content:encoded>" if is_full else ""
    return rss_item(name, f"<description>{SUMMARY}</description>{more}")


def atom_content(name: str, text: str) -> str:
    more = f'<content type="html">{text}</content>' if text == FULL else ""
    return atom_entry(name, f"<summary>{SUMMARY}</summary>{more}")


def json_item(member: str) -> Callable[[str, str], str]:
    def item(name: str, text: str) -> str:
        more = f',"{member}":"{text}"' if text == FULL else ""
        return f'{{"id":"urn:{name}","title":"{name}","summary":"{SUMMARY}"{more}}},'

    return item


def described(name: str, text: str) -> str:
    return rss_item(name, f"<description>{text}</description>")


def xhtml(name: str, text: str) -> str:
    inside = f'<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>{text}</p></div></content>'
    return atom_entry(name, inside)


def html_encoded(name: str, text: str) -> str:
    return rss_item(name, f"<content:encoded>&lt;p>{text}&lt;/p></content:encoded>")


LOSES_CONTENT = {
    "content:encoded": written(encoded, an_rss),
    "atom:content": written(atom_content, an_atom),
    "content_html": written(json_item("content_html"), a_json),
    "content_text": written(json_item("content_text"), a_json),
}
"""Documents whose entries outside `FULL` lose the element."""
IS_CUT = {
    "description": written(described, an_rss),
    "atom:content": written(xhtml, an_atom),
    "content:encoded": written(html_encoded, an_rss),
}
"""Documents whose entries outside `FULL` keep the element, with a cut text."""


async def looked(proxy: Proxy, origin: Origin, body: bytes) -> dict[str, str]:
    """Publish a document, refresh, and return the full texts."""
    origin.publish("/feed", body)
    proxy.clock.advance(DAY)
    found = (await proxy.whole(origin.url("/feed"))).body
    return {
        name: "full" if WORDS[-1] in served(found, name) else "short"
        for name in NAMES
        if name.encode() in found
    }


NAMES = ("first", "second", "third")


def served(body: bytes, name: str) -> str:
    text = body.decode()
    parts = text.split("<item>" if "<item>" in text else "<entry" if "<entry" in text else '{"id":')
    return next(part for part in parts[1:] if f"urn:{name}" in part)


def all_of(text: str, names: Sequence[str] = NAMES) -> Texts:
    return dict.fromkeys(names, text)


@on_both
@pytest.mark.parametrize("form", LOSES_CONTENT)
async def test_full_content_goes_before_none(proxy: Proxy, origin: Origin, form: str) -> None:
    """R10: without instants, or with equal ones; in each format, in the document and after it leaves."""
    make = LOSES_CONTENT[form]
    assert await looked(proxy, origin, make(all_of(FULL), 1)) == all_of("full")
    assert await looked(proxy, origin, make(all_of(SUMMARY), 2)) == all_of("full")
    assert [note["text"].partition(" ")[0] for note in await remarks(proxy, origin.url("/feed"))] == ["3"]
    assert await looked(proxy, origin, make(all_of(SUMMARY, NAMES[1:]), 3)) == all_of("full")
    assert [note["text"].partition(" ")[0] for note in await remarks(proxy, origin.url("/feed"))] == ["2"]
    assert await looked(proxy, origin, make({"first": SUMMARY}, 4)) == all_of("full")


async def test_excerpts_that_come_back_are_remarked(proxy: Proxy, origin: Origin) -> None:
    """R10: entries had left the document before; a note says so."""
    make = LOSES_CONTENT["content:encoded"]
    await looked(proxy, origin, make(all_of(FULL), 1))
    for updated, names, said in (
        (2, NAMES, ["3"]),
        (3, (), []),
        (4, NAMES[:2], ["2"]),
        (5, NAMES[:2], ["2"]),
    ):
        assert await looked(proxy, origin, make(all_of(SUMMARY, names), updated)) == all_of("full")
        found = await remarks(proxy, origin.url("/feed"))
        assert [note["text"].partition(" ")[0] for note in found] == said


async def test_a_later_full_text_goes_before_the_earlier_one(proxy: Proxy, origin: Origin) -> None:
    """R10: a text full again is the publisher's present one, and the note goes."""
    make = LOSES_CONTENT["content:encoded"]
    await looked(proxy, origin, make(all_of(FULL), 1))
    await looked(proxy, origin, make(all_of(SUMMARY), 2))
    assert await looked(proxy, origin, make(all_of(FULL), 3).replace(b"word0 ", b"again ")) == all_of("full")
    body = (await proxy.get(origin.url("/feed"))).body
    assert (body.count(b"again "), body.count(b"word0 ")) == (6, 0)
    assert await remarks(proxy, origin.url("/feed")) == []


@pytest.mark.fault("124")
@pytest.mark.parametrize("form", LOSES_CONTENT)
async def test_the_last_full_text_is_served_whenever_a_feed_turns_to_excerpts(
    proxy: Proxy, origin: Origin, form: str
) -> None:
    """R10; row 124: not one remembered from an earlier turn; only their order separates the two."""
    make = LOSES_CONTENT[form]
    for turn, first_word in enumerate((b"word0 ", b"again ", b"thrice "), start=1):
        full = make(all_of(FULL), 2 * turn).replace(b"word0 ", first_word)
        assert await looked(proxy, origin, full) == all_of("full")
        for names in (NAMES, NAMES[:1]):
            assert await looked(proxy, origin, make(all_of(SUMMARY, names), 2 * turn + 1)) == all_of("full")
            body = (await proxy.get(origin.url("/feed"))).body
            assert [first_word.decode() in served(body, name) for name in NAMES] == [True] * 3


@on_both
@pytest.mark.fault("124")
async def test_a_correction_outlives_the_turn_to_excerpts(proxy: Proxy, origin: Origin) -> None:
    """R8, R10; row 124: a correction in the subscription document alone; the archive has the old text."""
    make = LOSES_CONTENT["content:encoded"]
    archive = make(all_of(FULL, NAMES[:2]), 1)
    origin.publish("/1", bound(archive, b'<fh:archive/><atom:link rel="current" href="/feed"/>'))
    links = b'<atom:link rel="prev-archive" href="/1"/>'
    await looked(proxy, origin, bound(make(all_of(FULL), 2).replace(b"word0 ", b"again "), links))
    for updated in (3, 4):
        await looked(proxy, origin, bound(make(all_of(SUMMARY), updated), links))
        body = (await proxy.get(origin.url("/feed"))).body
        assert ["again " in served(body, name) for name in NAMES] == [True] * 3


async def test_a_later_instant_goes_before_all(proxy: Proxy, origin: Origin) -> None:
    """R10; RFC 4287, 4.2.15: an updated instant declares a revision, however short."""
    make = LOSES_CONTENT["atom:content"]
    await looked(proxy, origin, make(all_of(FULL), 1))
    later = make(all_of(SUMMARY), 2).replace(stamp(1).encode(), stamp(2).encode())
    assert await looked(proxy, origin, later) == all_of("short")


@on_both
@pytest.mark.fault("124")
@pytest.mark.parametrize("form", IS_CUT)
async def test_texts_that_are_cut_are_not_full(proxy: Proxy, origin: Origin, form: str) -> None:
    """R10; row 124: each begins like the earlier text and ends in a mark, and half of them change at once."""
    make = IS_CUT[form]
    assert await looked(proxy, origin, make(all_of(FULL), 1)) == all_of("full")
    cut = {"first": CUT, "second": CUT, "third": FULL}
    assert await looked(proxy, origin, make(cut, 2)) == all_of("full")
    for updated in (3, 4):  # an unchanged cut text is still cut
        assert await looked(proxy, origin, make(cut, updated)) == all_of("full")
        assert [note["text"].partition(" ")[0] for note in await remarks(proxy, origin.url("/feed"))] == ["2"]
    assert await looked(proxy, origin, make({"third": FULL}, 5)) == all_of("full")


@pytest.mark.fault("124")
@pytest.mark.parametrize("form", IS_CUT)
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (CUT, CUT.replace("[\u2026]", "[...]")),
        (f"{SUMMARY}\u2026 Read more (3 comments)", f"{SUMMARY}\u2026 Read more (4 comments)"),
        (CUT, " ".join(WORDS[:40]) + " [\u2026]"),
        (CUT, " ".join(WORDS[:10]) + " [\u2026]"),
    ],
    ids=["another mark", "a mark that counts", "longer", "shorter"],
)
async def test_excerpts_that_are_cut_otherwise_take_no_full_text_away(
    proxy: Proxy, origin: Origin, form: str, first: str, then: str
) -> None:
    """R10; row 124: another mark, longer excerpts; but new words are a revision."""
    make = IS_CUT[form]
    assert await looked(proxy, origin, make(all_of(FULL), 1)) == all_of("full")
    for updated, text in enumerate((first, then, first, then), start=2):
        assert await looked(proxy, origin, make(all_of(text), updated)) == all_of("full")
        assert [note["text"].partition(" ")[0] for note in await remarks(proxy, origin.url("/feed"))] == ["3"]
    revised = {**all_of(then), "second": f"Revised: {then}"}
    expected = {"first": "full", "second": "short", "third": "full"}
    assert await looked(proxy, origin, make(revised, 6)) == expected


@pytest.mark.parametrize("form", IS_CUT)
@pytest.mark.parametrize(
    "revised",
    [
        {"first": CUT, "second": FULL, "third": FULL},
        all_of(SUMMARY),
        all_of(f"Otherwise: {CUT}"),
    ],
    ids=["few", "no mark", "no beginning"],
)
async def test_a_text_that_its_author_has_shortened_is_as_it_is_now(
    proxy: Proxy, origin: Origin, form: str, revised: Texts
) -> None:
    """R10: less than half of the entries; without a mark; other words. Each shows that nothing was cut."""
    make = IS_CUT[form]
    await looked(proxy, origin, make(all_of(FULL), 1))
    expected = {name: "full" if text == FULL else "short" for name, text in revised.items()}
    assert await looked(proxy, origin, make(revised, 2)) == expected
    assert await remarks(proxy, origin.url("/feed")) == []


async def test_an_archive_that_was_shortened_is_as_its_publisher_has_it(proxy: Proxy, origin: Origin) -> None:
    """R10, R13: even if the full text is remembered from the subscription document."""
    make = LOSES_CONTENT["content:encoded"]

    def archive(text: str, updated: int) -> None:
        links = b'<fh:archive/><atom:link rel="current" href="/feed"/>'
        origin.publish("/1", bound(make(all_of(text, NAMES[:2]), updated), links))

    def subscription(names: Sequence[str], updated: int) -> bytes:
        links = b'<atom:link rel="prev-archive" href="/1"/>'
        return bound(make(all_of(FULL, names), updated), links)

    archive(FULL, 1)
    assert await looked(proxy, origin, subscription(NAMES, 1)) == all_of("full")
    assert await looked(proxy, origin, subscription(NAMES[2:], 2)) == all_of("full")
    archive(SUMMARY, 2)
    expected = {"first": "short", "second": "short", "third": "full"}
    assert await looked(proxy, origin, subscription(NAMES[2:], 3)) == expected
    assert await looked(proxy, origin, subscription(NAMES[2:], 4)) == expected


def bound(body: bytes, links: bytes) -> bytes:
    """Return the document with these links and their namespaces."""
    namespaces = f'<rss xmlns:atom="{ATOM_NS}" xmlns:fh="http://purl.org/syndication/history/1.0"'.encode()
    return body.replace(b"<rss", namespaces).replace(b"<description>", links + b"<description>", 1)


# The store


@on_both
async def test_what_was_stored_before_is_judged_by_its_bytes(aged: Aged, origin: Origin) -> None:
    """R10: an earlier version stored no mark of full texts."""
    clock, make = Clock(), LOSES_CONTENT["content:encoded"]
    async with running(aged.config, clock) as proxy:
        await looked(proxy, origin, make(all_of(FULL), 1))
        await looked(proxy, origin, make(all_of(FULL, NAMES[:2]), 2))
    aged.age(15)
    async with running(aged.config, clock) as proxy:
        assert await looked(proxy, origin, make(all_of(SUMMARY), 3)) == all_of("full")


@on_both
async def test_a_copy_of_the_store_knows_what_was_cut(
    tmp_path: Path, origin: Origin, store_url: str, request: pytest.FixtureRequest
) -> None:
    """R10: a backup, and a store moved to PostgreSQL, have only stored data to show it."""
    clock, copy, make = Clock(), tmp_path / "copy", IS_CUT["description"]
    async with running(a_config(tmp_path), clock) as proxy:
        await looked(proxy, origin, make(all_of(FULL), 1))
        assert await looked(proxy, origin, make(all_of(CUT), 2)) == all_of("full")
    to = request.getfixturevalue("empty_postgres_url") if store_url else ""
    await copied(tmp_path, copy, to)
    async with running(a_config(copy, store={"url": to}), clock) as proxy:
        assert await looked(proxy, origin, make(all_of(CUT), 3)) == all_of("full")
        assert await looked(proxy, origin, make(all_of(CUT, NAMES[1:]), 4)) == all_of("full")
