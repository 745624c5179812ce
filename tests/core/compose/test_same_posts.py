"""Entries under several ids are one post (R36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.chains import CORPUS
from tests.cpu_time import cpu_limit
from wholefeed.core.compose.same_posts import find_doubled, pair_posts, read_traits, resolve_names
from wholefeed.core.model import ATOM_NS, DC_NS, IANA_RELATION_PREFIX, EntryId, FeedDocument, Traits, entry_id
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError

URL = "http://site.test/feed"
NOON = "Sat, 13 Dec 2003 12:00:00 GMT"
LATER = "Sat, 13 Dec 2003 12:00:01 GMT"


def item(guid: str = "", link: str = "", title: str = "", date: str = "") -> str:
    fields = {"guid": guid, "link": link, "title": title, "pubDate": date}
    return f"<item>{''.join(f'<{name}>{text}</{name}>' for name, text in fields.items() if text)}</item>"


def traits_of(*items: str) -> dict[EntryId, Traits]:
    document = parse(f"<rss version='2.0'><channel>{''.join(items)}</channel></rss>".encode(), URL)
    return by_id(document, range(len(document.entries)))


def by_id(document: FeedDocument, ordinals: Sequence[int]) -> dict[EntryId, Traits]:
    found = read_traits(document, ordinals)
    return {document.entries[at].identity: each for at, each in zip(ordinals, found, strict=True)}


def owners_of(*known: Mapping[EntryId, Traits]) -> dict[int, set[EntryId]]:
    owners: dict[int, set[EntryId]] = {}
    for posts in known:
        for identity, traits in posts.items():
            for key in (*traits.ids, *traits.links, *traits.titles):
                owners.setdefault(key, set()).add(identity)
    return owners


def entry(name: str, link: str, title: str, *dates: str) -> str:
    """An Atom entry; its dates are elements."""
    written = "".join(
        f"<{date}>2003-12-13T12:00:0{second}Z</{date}>" for date, second in (each.split() for each in dates)
    )
    return f"<entry><id>{name}</id><title>{title}</title><link href='{link}'/>{written}</entry>"


@pytest.mark.parametrize(
    ("known", "new", "is_one"),
    [
        (
            entry("1", "/a", "t", "published 1", "updated 1"),
            entry("2", "/b", "t", "published 1", "updated 5"),
            True,
        ),
        (entry("1", "/a", "t", "published 1"), entry("2", "/a", "u", "published 1"), True),
        (entry("1", "/a", "t", "updated 1"), entry("2", "/a", "t", "updated 1"), True),
        (entry("1", "/a", "t", "updated 1"), entry("2", "/b", "t", "updated 1"), False),
        (entry("1", "/a", "t", "updated 1"), entry("2", "/a", "u", "updated 1"), False),
        (entry("1", "/a", "t", "updated 1"), entry("2", "/a", "t", "updated 2"), False),
        (entry("1", "/a", "t", "published 1"), entry("2", "/a", "t", "updated 1"), False),
    ],
)
def test_an_instant_of_update_is_none_of_publication(known: str, new: str, is_one: bool) -> None:
    """R36: some generators write one into all entries, so it proves nothing, even with the title."""
    one, other = (
        by_id(parse(f"<feed xmlns='{ATOM_NS}'>{each}</feed>".encode(), URL), [0]) for each in (known, new)
    )
    assert bool(pair_posts(other, owners_of(one), present=())) is is_one


A = "http://site.test/a"


@pytest.mark.parametrize(
    ("known", "new", "is_one"),
    [
        # ids in other spellings
        (item(A), item("https://site.test/a"), True),
        (item(A), item("https://WWW.Site.test/a/"), True),
        (item(A), item("http://site.test/a/index.html"), True),
        (item(A), item("http://site.test/a?utm_source=x&amp;fbclid=1"), True),
        (item(A), item("http://site.test/a;jsessionid=0A?PHPSESSID=2"), True),
        (item(A), item("http://site.test/a?"), True),
        (item(A), item("http://site.test/a#"), True),
        (item(A + "?id=1"), item(A + "?id=2"), False),
        (item(A), item("http://site.test/A"), False),
        (item(A), item("http://other.test/a"), False),
        (item("tag:a"), item("tag:A"), False),
        (item(A, title="t"), item(A + "#3", title="t"), True),
        (item(A + "#2", title="t"), item(A + "#3", title="t"), True),
        (item(A + "#2", "", "t", NOON), item(A + "#3", "", "t", NOON), True),
        (item(A + "#2", "", "t", NOON), item(A + "#3", "", "t", LATER), False),
        (item(A + "#2", A, "t", NOON), item(A + "#3", A, "t", LATER), False),
        (item(A + "#1", title="one"), item(A + "#2", title="two"), False),
        (item(A + "#1"), item(A + "#2"), False),
        (item(A + "#top", title="t"), item(A + "#3", title="t"), False),
        (item(link=A, title="t"), item(link=A + "?utm_campaign=7", title="t"), True),
        (item(link=A), item(link=f"https://web.archive.org/web/20200102030405/{A}"), True),
        # published alike
        (item("1", A, "t", NOON), item("2", A, "u", NOON), True),
        (item("1", A, "t", NOON), item("2", "http://new.test/a", "t", NOON), True),
        (item("1", A, "t", NOON), item("2", A, "t", LATER), False),
        (item("1", A, "t", NOON), item("2", A, "t"), False),
        (item("1", A, "t"), item("2", A, "t"), True),
        (item("1", A, "t"), item("2", A, "u"), False),
        (item("1", A, "t"), item("2", "http://new.test/a", "t"), False),
        (item("1", A), item("2", A), False),
        (item("1", "", "", NOON), item("2", "", "", NOON), False),
        (item("", A, "t", NOON), item("", "http://site.test/b", "t", NOON), True),
        (item("", A, "t", NOON), item("", A + "?id=1", "u", NOON), False),
        (
            item("", A, "t", NOON).replace("</item>", "<enclosure url='1'/></item>"),
            item("2", A, "t", NOON),
            False,
        ),
        (
            item("", A, "t", NOON).replace("</item>", "<enclosure url='1'/></item>"),
            item("", A + "?2", "t", NOON).replace("</item>", "<enclosure url='2'/></item>"),
            False,
        ),
        (item("1", A + "#1", "t", NOON), item("2", A + "#2", "u", NOON), False),
        (
            item("1", A, "t", NOON),
            item("2", f"https://web.archive.org/web/20200102030405/{A}", "u", NOON),
            True,
        ),
    ],
)
def test_what_makes_two_entries_one_post(known: str, new: str, is_one: bool) -> None:
    """R36: the id without spelling; or the publication date with link or title."""
    ((old_id, _),) = traits_of(known).items()
    ((new_id, _),) = traits_of(new).items()
    found = pair_posts(traits_of(new), owners_of(traits_of(known)), present=())
    assert found == ({new_id: old_id} if is_one else {})


@pytest.mark.parametrize(
    "written",
    [
        item("http://site.test/?p=1&amp;x=2", A, "a &lt;b&gt; c", NOON),
        item("1", A, "<![CDATA[a & b]]>", NOON),
        item("1", A, " a\n b &#8364;", NOON),
        item("1", "", "no link but a guid", NOON),
        item("http://site.test/guid", "", "", NOON),
        item("1", A, "t", "yesterday"),
        item("1", A, "one", NOON).replace("</item>", "<title>two</title></item>"),
        item("1", "/relative", "t", NOON).replace("<item", "<item xml:base='http://other.test/'"),
        item("1", A, "t").replace(
            "</item>", f"<dc:date xmlns:dc='{DC_NS}'>2003-12-13T12:00:00Z</dc:date></item>"
        ),
        entry("1", "/a?b&amp;c", "t", "published 1", "updated 2"),
        entry("1", "/a", "t", "published 1").replace("<link", "<link rel='self' href='/self'/><link"),
        entry("1", "/a", "t", "published 1").replace("<link", "<link rel='alternate' href='/first'/><link"),
        entry("1", "/a", "t").replace(
            "<link", f"<link rel='{IANA_RELATION_PREFIX}alternate' href='/first'/><link"
        ),
        entry("1", "/a", "t").replace("<title>", "<source><title>other</title><id>2</id></source><title>"),
    ],
)
def test_how_an_entry_is_written_makes_no_difference(written: str) -> None:
    """R36: the fast reading equals the element tree, which a comment forces."""
    end = written.rindex("</")
    bodies = (written, f"{written[:end]}<!-- odd -->{written[end:]}")
    make = (
        f"<feed xmlns='{ATOM_NS}'>{{}}</feed>"
        if "<entry" in written
        else "<rss version='2.0'><channel>{}</channel></rss>"
    )
    plain, odd = (by_id(parse(make.format(each).encode(), URL), [0]) for each in bodies)
    assert plain == odd


def test_a_pair_is_unique_in_both_directions() -> None:
    """R36: among several candidates none is chosen; ids go before the rest."""
    two = traits_of(item("1", A, "t", NOON), item("2", A, "u", NOON))
    one = traits_of(item("3", A, "v", NOON))
    assert pair_posts(one, owners_of(two), present=()) == {}
    assert pair_posts(two, owners_of(one), present=()) == {}
    assert pair_posts(one, owners_of(traits_of(item("1", A, "t", NOON))), present=()) != {}
    assert pair_posts(one, owners_of(traits_of(item("1", A, "t", NOON))), present={entry_id("1")}) == {}
    old = traits_of(*(item(f"{A}{n}", A, "t", NOON) for n in range(3)))
    new = traits_of(*(item(f"https://site.test/a{n}", A, "t", NOON) for n in range(3)))
    expected = {entry_id(f"https://site.test/a{n}"): entry_id(f"{A}{n}") for n in range(3)}
    assert pair_posts(new, owners_of(old), present=()) == expected


def test_many_posts_that_are_alike_cost_little() -> None:
    """R36: a feature of thousands proves nothing and is not compared in pairs. A known post that shares it
    stays a candidate, so nobody gets it.
    """
    owners = {SHARED: {entry_id(f"known {n}") for n in range(20_000)}, 1: {entry_id("known 1")}}
    new = {entry_id(f"new {n}"): of_titles(SHARED) for n in range(20_000)}
    with cpu_limit(0.5):  # pair by pair it takes a minute and ten gigabytes
        assert pair_posts({**new, entry_id("other"): of_titles(1)}, owners, present=()) == {}
    assert pair_posts({entry_id("other"): of_titles(1)}, owners, present=()) != {}


@pytest.mark.parametrize(
    ("shared", "found"),
    [
        ({1: "ab"}, ["ab"]),
        ({1: "ab", 3: "ab"}, ["ab"]),
        ({1: "ab", 3: "bc"}, []),
        ({1: "abc"}, []),
        ({1: "ab", 3: "acd"}, []),
        ({2: "ab", 4: "cd"}, []),
        ({2: "ab", 4: "cd", 6: "ef"}, ["ab", "cd", "ef"]),
        ({2: "ab", 4: "cd", 6: "ef", 8: "fgh"}, []),
        ({1: "xa", 2: "ab", 4: "bc", 6: "de", 8: "fg"}, ["ax", "bc", "de", "fg"]),
        ({2: "ab", 4: "cd", 6: "yz"}, []),
    ],
)
def test_what_is_there_twice(shared: Mapping[int, str], found: Sequence[str]) -> None:
    """R36: pairs without anything in common with a third entry; for ids (odd), at least three."""
    rows = [(key, EntryId(name.encode())) for key, names in shared.items() for name in names]
    doubled = find_doubled(rows, lambda one, other: (one, other) == (b"y", b"z"))
    assert [(one + other).decode() for one, other in doubled] == found


SHARED = 2


def of_titles(*titles: int) -> Traits:
    return Traits(ids=(), links=(), titles=titles, link=None, has_id=True)


def test_a_link_that_is_ambiguous_does_not_count() -> None:
    """R9, R36: and a title still counts."""
    known, new = traits_of(item("1", A, "t", NOON)), traits_of(item("2", A, "u", NOON))
    assert pair_posts(new, owners_of(known), present=(), ambiguous={entry_id(A)}) == {}
    new = traits_of(item("2", A, "t", NOON))
    assert pair_posts(new, owners_of(known), present=(), ambiguous={entry_id(A)}) != {}


def test_two_ids_that_stand_together_are_two_posts() -> None:
    """R36: one document that holds both parts them."""
    one, two, three, post = (entry_id(each) for each in ("1", "2", "3", "post"))
    found = resolve_names([one, two, three], {one: post, two: post, three: one})
    assert (found.names, found.parted) == ({three: one}, [one, two])
    assert resolve_names([one, post], {one: post}) == ({}, [one])
    assert resolve_names([one, one], {one: post}) == ({one: post}, [])


@pytest.mark.fault("57a")
@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real feeds is absent: {CORPUS}")
def test_every_id_of_a_feed_stays_its_own() -> None:
    """R36: in a window of half the feed that slides by one entry, and in two halves."""
    joined, feeds = dict[str, object](), 0
    for path in sorted(CORPUS.rglob("*")):
        if not path.is_file():
            continue
        try:
            document = parse(path.read_bytes(), URL)
        except ParseError:
            continue
        ids = [entry.identity for entry in document.entries]
        if len(ids) < FEWEST:
            continue
        feeds += 1
        half = len(ids) // 2
        steps = [(at, at + half) for at in range(len(ids) - half, -1, -1)]
        for play in (steps, [(half, len(ids)), (0, half)]):
            if pairs := played(document, ids, play):
                joined[path.name] = pairs
    assert (feeds > 0, joined) == (True, {})


FEWEST = 6


def played(
    document: FeedDocument, ids: Sequence[EntryId], spans: Sequence[tuple[int, int]]
) -> dict[EntryId, EntryId]:
    """Pairs taken for one post as a feed shows one span of its entries after another."""
    known: dict[EntryId, Traits] = {}
    found: dict[EntryId, EntryId] = {}
    for start, end in spans:
        new = [at for at in range(start, end) if ids[at] not in known]
        traits = by_id(document, new)
        present = {ids[at] for at in range(start, end)} - traits.keys()
        found |= pair_posts(traits, owners_of(known), present=present, ambiguous=document.ambiguous)
        known |= traits
    return found
