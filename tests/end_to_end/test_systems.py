"""Every system of linked feed documents, with its traps, through the whole proxy (R0, R4 to R6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.feeds import an_item, atom, ids, links, rss
from tests.origin import Origin
from tests.running import Proxy

Make = Callable[..., bytes]
Documents = dict[str, bytes]


def flag(name: str, value: str) -> str:
    return f"<fh:{name}>{value}</fh:{name}>"


STATEFUL = flag("stateful", "1")


def chain_of(
    relation: str, *, make: Make = atom, extra: str = "", archive: str = "", flagged: bool = False
) -> Documents:
    """Publish /feed, /2 and /1, with entries c, b and a; `extra` stands in the first, `archive` in the
    others."""
    older: dict[str, dict[str, str]] = {}
    elements = {}
    for path, target in (("/feed", "/2"), ("/2", "/1"), ("/1", "")):
        is_element = relation == "fh:prev"
        older[path] = {relation: target} if target and not is_element else {}
        elements[path] = flag("prev", target) if target and is_element else ""
    return {
        "/feed": make(an_item("c", 3), extra=extra + elements["/feed"], updated=3, **older["/feed"]),
        "/2": make(
            an_item("b", 2), extra=archive + elements["/2"], archive=flagged, updated=2, **older["/2"]
        ),
        "/1": make(an_item("a", 1), extra=archive, archive=flagged, updated=1),
    }


def link(relation: str, href: str) -> str:
    return f'<link rel="{relation}" href="{href}"/>'


def rss_link(relation: str, href: str) -> str:
    return f'<atom:link rel="{relation}" href="{href}"/>'


@dataclass(frozen=True)
class System:
    documents: Documents
    state: str
    entries: str
    """In output order."""
    unasked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    redirects: dict[str, str] = field(default_factory=dict)
    asked: str = "/feed"
    headers: dict[str, str] = field(default_factory=dict)
    """By path."""
    kept: tuple[str, ...] = ()
    """Relations outside RFC 5005."""


def pages(*extras: str, make: Make = atom, number: int = 3) -> Documents:
    """Publish /feed, /feed?page=2 …: one entry each, newest first, linked by `next`, `prev` and `last`."""
    names = ["/feed", *(f"/feed?page={n}" for n in range(2, number + 1))]
    documents = {}
    for n, name in enumerate(names):
        letter = "zyxwvutsrq"[n]
        documents[name] = make(
            an_item(letter, 20 - n), extra=extras[n] if n < len(extras) else "",
            first="/feed", last=names[-1],
            prev=names[n - 1] if n else None, next=names[n + 1] if n + 1 < number else None,
        )  # fmt: skip
    return documents


GOOGLE_FEED = "http://schemas.google.com/g/2005#feed"
ASCENDING = "order=ASC&#038;orderby=modified"


SYSTEMS = {
    # -- R5, R1
    "-00 stateful 0": System(
        {"/feed": atom(an_item("a"), extra=flag("stateful", " 0\n"), prev="/1")}, "complete", "a", ("/1",)
    ),
    "-04 incremental false": System(
        {"/feed": atom(an_item("a"), extra=flag("incremental", "false") + flag("prev", "/1"))},
        "complete", "a", ("/1",),
    ),
    "-04 incremental false in CDATA": System(
        {"/feed": rss(an_item("a"), extra=flag("incremental", "<![CDATA[ FALSE ]]>"), prev="/1")},
        "complete", "a", ("/1",),
    ),
    "R0 a flag before prev-archive": System(
        {"/feed": atom(an_item("a"), extra=flag("stateful", "0"), prev_archive="/1")},
        "complete", "a", ("/1",),
    ),
    "flags that contradict each other take nothing away": System(
        chain_of("fh:prev", extra=flag("stateful", "0") + flag("incremental", "true")), "complete", "cba"
    ),
    "a junk flag counts as absent": System(
        {"/feed": atom(an_item("a"), extra=flag("stateful", "no"))}, "remembered", "a"
    ),
    "a flag of another namespace is none": System(
        {"/feed": atom(an_item("a"), extra='<x:stateful xmlns:x="urn:x">0</x:stateful>')}, "remembered", "a"
    ),
    "a flag under another prefix counts": System(
        {"/feed": atom(an_item("a"), extra=flag("stateful", "0").replace("fh:", "h:").replace(
            "<h:stateful", '<h:stateful xmlns:h="http://purl.org/syndication/history/1.0"'))},
        "complete", "a",
    ),
    # -- R4
    "-00 prev with stateful 1": System(chain_of("prev", extra=STATEFUL, archive=STATEFUL), "complete", "cba"),
    "-00 prev with stateful 1, padded": System(
        chain_of("prev", extra=flag("stateful", "\n\t1 "), archive=STATEFUL), "complete", "cba"
    ),
    "-00 in RSS": System(chain_of("prev", make=rss, extra=STATEFUL), "complete", "cba"),
    "PaceFeedState prev with this": System(chain_of("prev", extra=link("this", "/3")), "complete", "cba"),
    "PaceFeedState prev that leads to its own this": System(
        {"/feed": atom(an_item("a"), this="/3", prev="/3")}, "complete", "a", ("/3",)
    ),
    "-03 fh:prev": System(chain_of("fh:prev"), "complete", "cba"),
    "-03 fh:prev in RSS": System(chain_of("fh:prev", make=rss), "complete", "cba"),
    "-04 fh:prev with incremental true": System(
        chain_of("fh:prev", extra=flag("incremental", "true")), "complete", "cba"
    ),
    "-04 fh:prev with a junk flag": System(
        chain_of("fh:prev", extra=flag("incremental", "maybe")), "complete", "cba"
    ),
    "-04 fh:prev is relative to the base": System(
        {
            "/feed": atom(an_item("b", 2), extra=flag("prev", " 1 ")).replace(
                b"<feed ", b'<feed xml:base="/old/" '
            ),
            "/old/1": atom(an_item("a", 1)),
        },
        "complete", "ba", ("/1",),
    ),
    "fh:prev before prev": System(
        chain_of("fh:prev", extra=STATEFUL + link("prev", "/other")), "complete", "cba", ("/other",)
    ),
    "-05 previous with current": System(
        chain_of("previous", extra=link("current", "/feed"), archive=link("current", "/feed")),
        "complete", "cba",
    ),
    "-05 previous from an archive": System(
        chain_of("previous", extra=link("current", "/feed"), archive=link("current", "/feed")),
        "complete", "cba", asked="/2",
    ),
    "-05 previous beside first and next": System(
        chain_of("previous", extra=link("current", "/feed") + link("first", "/x") + link("next", "/y")),
        "complete", "cba", ("/x", "/y"),
    ),
    "bare prev": System(chain_of("prev"), "complete", "cba"),
    "bare previous": System(chain_of("previous", make=rss), "complete", "cba"),
    "bare previous of undated entries": System(
        {
            "/feed": atom(an_item("b", None), previous="/1"),
            "/1": atom(an_item("a", None)),
        },
        "complete", "ba",
    ),
    "bare prev to newer entries is a page's": System(
        {
            "/feed": atom(an_item("a", 1), prev="/new"),
            "/new": atom(an_item("b", 2), next="/feed"),
        },
        "paged", "ab", notes=("NewerNotOlder",),
    ),
    "-05 previous to nothing beside next is a page's": System(
        {
            "/feed": atom(an_item("b", 2), current="/feed", previous="/newer", next="/older"),
            "/newer": atom(previous="/newer"),
            "/older": atom(an_item("a", 1), previous="/feed"),
        },
        "paged", "ba", notes=("NewerNotOlder",),
    ),
    "a missing document of a legacy chain": System(
        {"/feed": atom(an_item("a"), extra=STATEFUL, prev="/gone")}, "partial", "a"
    ),
    "R12 prev-archive from the header": System(
        {"/feed": atom(an_item("b", 2)), "/1": atom(an_item("a", 1))},
        "complete", "ba", headers={"/feed": '</1>; rel="prev-archive"'},
    ),
    # -- R6
    "RFC 5005, 3": System(pages(), "paged", "zyx"),
    "RFC 5005, 3 in RSS": System(pages(make=rss), "paged", "zyx"),
    "R12 next from the header": System(
        {"/feed": atom(an_item("b", 2)), "/2": atom(an_item("a", 1))},
        "paged", "ba", headers={"/feed": '</2>; rel="http://www.iana.org/assignments/relation/NEXT"'},
    ),
    "entered in the middle": System(pages(number=5), "paged", "xzywv", asked="/feed?page=3"),
    "entered at the end": System(pages(number=4), "paged", "wzyx", asked="/feed?page=4"),
    "entered in the middle, without first": System(
        {
            "/1": atom(an_item("d", 4), next="/2"),
            "/2": atom(an_item("c", 3), next="/3", previous="/1"),
            "/3": atom(an_item("b", 2), next="/4", previous="/2"),
            "/4": atom(an_item("a", 1), previous="/3"),
        },
        "paged", "bdca", asked="/3",
    ),
    "the last page alone is linked": System(
        {"/feed": atom(an_item("c", 3), last="/3"), "/3": atom(an_item("a", 1), previous="/2"),
         "/2": atom(an_item("b", 2), previous="/feed")},
        "paged", "cba",
    ),
    "a page that is first and last": System(
        {"/feed": atom(an_item("a"), first="/feed", last="/feed")}, "paged", "a"
    ),
    "archive and paging links": System(
        {
            "/feed": atom(an_item("b", 2), prev_archive="/1", next="/p2", first="/feed"),
            "/1": atom(an_item("a", 1), archive=True, next="/feed", prev="/p"),
        },
        "complete", "ba", ("/p2", "/p"),
    ),
    "next to newer entries": System(
        {
            "/feed": atom(an_item("a", 1), next="/2"),
            "/2": atom(an_item("b", 2), next="/3", previous="/feed"),
            "/3": atom(an_item("c", 3), previous="/2"),
        },
        "paged", "acb", notes=("PagesAscend",),
    ),
    "pages counted from the oldest": System(
        {
            "/1": atom(an_item("a", 1), next="/2", first="/1", last="/feed"),
            "/2": atom(an_item("b", 2), next="/feed", previous="/1", first="/1", last="/feed"),
            "/feed": atom(an_item("c", 3), previous="/2", first="/1", last="/feed"),
        },
        "paged", "cba", notes=("PagesAscend",),
    ),
    "page 2 redirects to page 1": System(
        {"/feed": atom(an_item("a"), next="/feed?page=2")}, "paged", "a", redirects={"/feed?page=2": "/feed"}
    ),
    "the page parameter is ignored": System(
        {
            f"/feed?page={n}" if n > 1 else "/feed": atom(
                an_item("b", 2), an_item("a", 1), next=f"/feed?page={n + 1}", extra=f"<!-- {n} -->"
            )
            for n in range(1, 9)
        },
        "paged", "ba", tuple(f"/feed?page={n}" for n in range(4, 9)), notes=("PagesRepeat",),
    ),
    "page 1 for ever, byte for byte": System(
        dict.fromkeys(["/feed", "/feed?page=2"], atom(an_item("a"), next="/feed?page=2")), "paged", "a"
    ),
    "next to a 404 at the end": System(
        {"/feed": atom(an_item("b", 2), next="/2"), "/2": atom(an_item("a", 1), next="/3")},
        "paged", "ba", notes=("PageGone",),
    ),
    "a 404 in front of the last page": System(
        {"/feed": atom(an_item("a"), next="/2", last="/9")}, "partial", "a", notes=("DocumentUnavailable",)
    ),
    "an empty page in the middle": System(
        {
            "/feed": atom(an_item("b", 2), next="/2"),
            "/2": atom(next="/3"),
            "/3": atom(an_item("a", 1)),
        },
        "paged", "ba",
    ),
    "HTML as page 2": System(
        {"/feed": atom(an_item("a"), next="/2"), "/2": b"<!DOCTYPE html><html><body>Hello</body></html>"},
        "partial", "a", notes=("DocumentUnavailable",),
    ),
    "another format as page 2": System(
        {"/feed": atom(an_item("a"), next="/2"), "/2": rss(an_item("b"))},
        "partial", "a", notes=("FormatMismatch",),
    ),
    "a next link that cannot be followed": System(
        {"/feed": atom(an_item("a"), next="javascript:more()")}, "partial", "a", notes=("DeadChainLink",)
    ),
    "a circle of pages": System(
        {"/feed": atom(an_item("b", 2), next="/2"), "/2": atom(an_item("a", 1), next="/feed")}, "paged", "ba"
    ),
    "fh:complete on a page is R1's": System(
        {"/feed": atom(an_item("a"), complete=True, next="/2")}, "complete", "a", ("/2",)
    ),
    # -- As publishers write it (docs/compatibility.md)
    "no link at all": System(
        {"/feed": rss(an_item("a")), "/feed?paged=2": rss(an_item("b"))},
        "remembered", "a", ("/feed?paged=2",),
    ),
    "Podlove Publisher": System(
        {
            path: rss(an_item(name), first="/feed/mp3/", last="/feed/mp3/?paged=3", prev=newer, next=older)
            for path, name, newer, older in (
                ("/feed/mp3/", "c", None, "/feed/mp3/?paged=2"),
                ("/feed/mp3/?paged=2", "b", "/feed/mp3/", "/feed/mp3/?paged=3"),
                ("/feed/mp3/?paged=3", "a", "/feed/mp3/?paged=2", None),
            )
        },
        "paged", "cba", asked="/feed/mp3/",
    ),
    "Podigee": System(
        {path: rss(an_item("a"), first="/feed", last="/feed?page=1") for path in ("/feed", "/feed?page=1")},
        "paged", "a",
    ),
    "Omny": System(
        {
            path: rss(an_item("b"), next="/feed?page=2", first="/feed?page=1", last="/feed?page=2")
            for path in ("/feed", "/feed?page=1")
        }
        | {"/feed?page=2": rss(an_item("a"), previous="/feed?page=1", first="/feed?page=1")},
        "paged", "ba",
    ),
    "Blogger": System(
        {
            "/feeds/posts/default": atom(
                an_item("b", 2), next="/feeds/posts/default?start-index=2&amp;max-results=1",
                extra=link(GOOGLE_FEED, "/feeds/posts/default"),
            ),
            "/feeds/posts/default?start-index=2&max-results=1": atom(
                an_item("a", 1), previous="/feeds/posts/default?start-index=1&amp;max-results=1"
            ),
        },
        "paged", "ba", ("/feeds/posts/default?start-index=1&max-results=1",),
        asked="/feeds/posts/default", kept=(GOOGLE_FEED,),
    ),
    "FeedBurner's prefix": System(
        {
            "/feed": rss(an_item("b"), next="/2").replace(b"atom:", b"atom10:").replace(
                b"xmlns:atom=", b"xmlns:atom10="),
            "/2": rss(an_item("a")),
        },
        "paged", "ba",
    ),
    "Atom Hopper": System(
        {
            "/feed": atom(
                an_item("b", 2), current="/feed", previous="/feed?marker=b&amp;direction=forward",
                next="/feed?marker=a&amp;direction=backward", last="/feed?marker=a&amp;direction=backward",
            ),
            "/feed?marker=b&direction=forward": atom(current="/feed"),
            "/feed?marker=a&direction=backward": atom(
                an_item("a", 1), current="/feed", previous="/feed?marker=a&amp;direction=forward"
            ),
        },
        "paged", "ba", notes=("NewerNotOlder",),
    ),
    "Mastodon": System(
        {
            "/feed": atom(an_item("b", 2), next="/feed?max_id=2"),
            "/feed?max_id=2": atom(an_item("a", 1), next="/feed?max_id=1"),
            "/feed?max_id=1": atom(),
        },
        "paged", "ba",
    ),
    "OData": System(
        {
            "/svc/Things": atom(an_item("b", 2), next="Things?$skiptoken=2").replace(
                b"<feed ", b'<feed xml:base="/svc/" '),
            "/svc/Things?$skiptoken=2": atom(an_item("a", 1)),
        },
        "paged", "ba", asked="/svc/Things",
    ),
    "Publ": System(
        {
            "/feed": atom(an_item("d", 4), an_item("c", 3), prev_archive="/feed?date=2026-10"),
            "/feed?date=2026-10": atom(
                an_item("c", 3), an_item("b", 2), archive=True, current="/feed",
                prev_archive="/feed?date=2026-09", next_archive="/feed",
            ),
            "/feed?date=2026-09": atom(
                an_item("a", 1), archive=True, current="/feed", next_archive="/feed?date=2026-10"
            ),
        },
        "complete", "dcba",
    ),
    "wp-fullhistory": System(
        {
            "/feed/": rss(
                an_item("d", 4), an_item("c", 3), updated=4, prev_archive=f"/feed/?{ASCENDING}&#038;paged=2"
            ),
            "/feed/?order=ASC&orderby=modified&paged=2": rss(
                an_item("b", 2), an_item("d", 4), updated=4, archive=True, current="/feed/",
                prev_archive=f"/feed/?{ASCENDING}",
            ),
            "/feed/?order=ASC&orderby=modified": rss(
                an_item("a", 1), an_item("c", 3), updated=3, archive=True, current="/feed/"
            ),
        },
        "complete", "dcba", asked="/feed/",
    ),
    "OpenMRS": System(
        {
            "/recent": atom(an_item("c", 3), extra=link("via", "/2"), prev_archive="/1"),
            "/1": atom(an_item("a", 1), an_item("b", 2), extra=link("via", "/1"), next_archive="/2"),
        },
        "complete", "cba", asked="/recent",
    ),
}  # fmt: skip


def publish(origin: Origin, system: System) -> None:
    for path, body in system.documents.items():
        headers = [("Link", system.headers[path])] if path in system.headers else []
        origin.publish(path, body, headers=headers)
    for path, target in system.redirects.items():
        origin.redirect(path, target)


def entries(body: bytes, state: str) -> str:
    return "".join(ids(body)[1 if state == "partial" else 0 :])


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())
async def test_a_system_comes_out_whole(proxy: Proxy, origin: Origin, system: System) -> None:
    """R0, R4 to R6, R12, R17, R21; RFC 5005, 3; the drafts."""
    publish(origin, system)
    url = origin.url(system.asked)

    reply = await proxy.whole(url)

    assert (reply.state, entries(reply.body, reply.state)) == (system.state, system.entries)
    assert (b"complete/>" in reply.body) is (system.state == "complete")
    assert set(links(reply.body)) - {"self", "via", "alternate"} == set(system.kept)
    assert b"fh:stateful" not in reply.body
    assert b"fh:prev" not in reply.body
    counts = origin.counts()
    assert not counts.keys() & set(system.unasked)
    shown = {note["code"] for note in (await proxy.status(url))["notes"]}
    assert shown >= set(system.notes)
    if system.state != "partial" and "NewerNotOlder" not in system.notes and not system.redirects:
        assert max(counts.values()) == (2 if system.asked == "/2" else 1)

    again = await proxy.refreshed(url)
    assert (again.state, again.body) == (reply.state, reply.body)
