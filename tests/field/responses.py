"""Cases of HTTP responses: codings, cookies, syntax, redirects, pages with a feed link, validators."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

import brotli  # type: ignore[import-untyped]

from tests.answers import Answer, Computed, Document, Raw, Redirect, Status
from tests.field.cases import ALL, PATH, XML, Case, Expected, Look, feed, in_state, item, refused, rss, titles

NEW = "/new.xml"
BODY = rss().encode()
MORE = rss(4, 3, 2, 1).encode()
WITH_MORE = titles("Night 4", *ALL)
OK = b"HTTP/1.1 200 OK\r\n"


def cases() -> Iterator[Case]:
    yield from _codings()
    yield from _cookies()
    yield from _syntax()
    yield from _redirects()
    yield from _statuses()
    yield from _meta_refresh()
    yield from _discovery()
    yield from _validators()
    yield from _targets()


def _case(
    name: str, kind: str, answer: Answer | bytes, expected: Expected | None = None, path: str = PATH
) -> Case:
    sent = Raw(answer) if isinstance(answer, bytes) else answer
    return Case(name, kind, [{path: sent}], expected or titles(*ALL), path)


def _coded(body: bytes, *headers: tuple[str, str], media: str = XML) -> Answer:
    return Document(body=body, headers=(("Content-Type", media), *headers))


def _codings() -> Iterator[Case]:
    kind = "codings that lie"
    for name in (
        "utf-8",
        "UTF8",
        "none",
        "text/xml",
        "8bit",
        "chunked",
        "identity",
        "binary",
        "7bit",
        "",
        "application/xml",
    ):
        yield _case(f"names {name or 'nothing'}", kind, _coded(BODY, ("Content-Encoding", name)))
    packed = gzip.compress(BODY)
    named = {
        "gzip, unnamed": (packed, None),
        "gzip named, plain sent": (BODY, "gzip"),
        "deflate named, plain sent": (BODY, "deflate"),
        "br named, plain sent": (BODY, "br"),
        "br named, gzip sent": (packed, "br"),
        "deflate named, gzip sent": (packed, "deflate"),
        "gzip named, zlib sent": (zlib.compress(BODY), "gzip"),
        "gzip named twice, sent once": (packed, "gzip, gzip"),
        "gzip twice, named twice": (gzip.compress(packed), "gzip, gzip"),
        "gzip and br": (brotli.compress(packed), "gzip, br"),
        "zeros behind": (packed + bytes(40), "gzip"),
        "a line break behind": (packed + b"\r\n", "gzip"),
        "junk behind": (packed + b"<!-- served -->", "gzip"),
        "two members": (gzip.compress(BODY[:300]) + gzip.compress(BODY[300:]), "gzip"),
        "x-gzip": (packed, "x-gzip"),
    }
    for name, (body, coding) in named.items():
        yield _case(name, kind, _coded(body, *([("Content-Encoding", coding)] if coding else [])))
    wrong = packed[:-8] + b"\0\0\0\0" + packed[-4:]
    yield _case("a wrong sum", kind, _coded(wrong, ("Content-Encoding", "gzip")), refused("content-coding"))
    yield _case("gzip as a media type", kind, _coded(packed, media="application/x-gzip"), path="/feed.xml.gz")
    yield _case("gzip as another media type", kind, _coded(packed, media="application/gzip"))


def _if_cookie(cookie: str, then: Answer, otherwise: Answer) -> Answer:
    return Computed(lambda request: then if cookie in request.headers.get("cookie", "") else otherwise)


def _lead(location: str, *headers: tuple[str, str], status: int = 302) -> Answer:
    return Status(status, (("Location", location), *headers))


def _cookies() -> Iterator[Case]:
    kind = "cookies"
    for status in (301, 302, 303, 307, 308):
        again = _lead(PATH, ("Set-Cookie", "seen=1; Path=/; HttpOnly"), status=status)
        yield _case(f"to itself, {status}", kind, _if_cookie("seen=1", _coded(BODY), again))
    page = Document(
        body=b"<html><body>Please allow cookies</body></html>", headers=(("Content-Type", "text/html"),)
    )
    checked = {
        PATH: _lead(f"{PATH}?check=1", ("Set-Cookie", "c=1")),
        f"{PATH}?check=1": _if_cookie("c=1", _coded(BODY), page),
    }
    yield Case("to a check", kind, [checked], titles(*ALL))
    two = {
        PATH: _lead("/gate", ("Set-Cookie", "a=1; Path=/")),
        "/gate": _lead(NEW, ("Set-Cookie", "b=2; Path=/; Max-Age=600")),
        NEW: _if_cookie("a=1", _if_cookie("b=2", _coded(BODY), Status(403)), Status(403)),
    }
    yield Case("two of them", kind, [two], titles(*ALL))
    yield _case("one that helps nothing", kind, _lead(PATH, ("Set-Cookie", "n=1")), refused("redirect-loop"))


def _syntax() -> Iterator[Case]:
    kind = "syntax of HTTP"
    size = b"Content-Length: %d\r\n" % len(BODY)
    chunked = b"Transfer-Encoding: chunked\r\n"
    chunks = b"%x\r\n" % len(BODY) + BODY + b"\r\n"
    fields = b"".join(b"X-%d: %d\r\n" % (at, at) for at in range(200))
    yield from (
        _case(name, kind, sent)
        for name, sent in {
            "a line without a colon": OK + b"This is no field\r\n" + size + b"\r\n" + BODY,
            "a blank before the colon": OK + b"Content-Type : text/xml\r\n" + size + b"\r\n" + BODY,
            "a blank in a name": OK + b"X Powered By: php\r\n" + size + b"\r\n" + BODY,
            "an equal length twice": OK + size + size + b"\r\n" + BODY,
            "an equal length in a list": OK
            + b"Content-Length: %d, %d\r\n\r\n" % (len(BODY), len(BODY))
            + BODY,
            "an empty length": OK + b"Content-Length:\r\nConnection: close\r\n\r\n" + BODY,
            "200 fields": OK + fields + size + b"\r\n" + BODY,
            "LF alone": (OK + size + b"\r\n").replace(b"\r", b"") + BODY,
            "no reason": b"HTTP/1.1 200\r\n" + size + b"\r\n" + BODY,
            "chunks in HTTP/1.0": b"HTTP/1.0 200 OK\r\n" + chunked + b"\r\n" + chunks + b"0\r\n\r\n",
            "blanks behind a chunk's size": OK
            + chunked
            + b"\r\n"
            + chunks.replace(b"\r\n", b"  \r\n", 1)
            + b"0\r\n\r\n",
            "a trailer": OK + chunked + b"Trailer: X-T\r\n\r\n" + chunks + b"0\r\nX-T: 1\r\n\r\n",
            "bytes that are not ASCII": b"HTTP/1.1 200 D\xe9j\xe0\r\nX-A: caf\xe9\r\n"
            + size
            + b"\r\n"
            + BODY,
            "HTTP/2.0 in words": b"HTTP/2.0 200 OK\r\n" + size + b"\r\n" + BODY,
            "a line break before": b"\r\n" + OK + size + b"\r\n" + BODY,
            "no last chunk": OK + chunked + b"\r\n" + chunks,
            "half of the last chunk": OK + chunked + b"\r\n" + chunks + b"0\r\n",
        }.items()
    )
    for name, sent in {
        "two different lengths": OK + size + b"Content-Length: 5\r\n\r\n" + BODY,
        "chunks and a length": OK + size + chunked + b"\r\n" + chunks + b"0\r\n\r\n",
    }.items():
        yield _case(name, kind, sent, refused("protocol-error"))


def _redirects() -> Iterator[Case]:
    kind = "where a redirect leads"
    for location, to in {
        "/new a b.xml": "/new%20a%20b.xml",
        "/new.xml#_=_": NEW,
        "/new.xml?a=[1]|{2}^`": "/new.xml?a=%5B1%5D%7C%7B2%7D%5E%60",
        "?new=1": f"{PATH}?new=1",
        "new.xml": NEW,
        " /new.xml ": NEW,
        "\t/new.xml": NEW,
        "/new%zz.xml": "/new%zz.xml",
        "/new\\x.xml": "/new/x.xml",
    }.items():
        yield Case(
            f"to {location!r}", kind, [{PATH: _lead(location, status=301), to: _coded(BODY)}], titles(*ALL)
        )
    for name, make in {
        "without a scheme": lambda request: f"//{request.headers['host']}{NEW}",
        "in capitals": lambda request: f"HTTP://{request.headers['host']}{NEW}",
    }.items():
        yield Case(name, kind, [{PATH: _leading(make), NEW: _coded(BODY)}], titles(*ALL))
    for location in ("\\new.xml", "\\\\127.0.0.1\\new.xml", "http:\\\\127.0.0.1\\new.xml"):
        lead = {PATH: _lead(location, status=301), NEW: _coded(BODY)}
        yield Case(f"to {location!r}", kind, [lead], refused("bad-redirect"))
    latin = Raw(b"HTTP/1.1 302 Found\r\nLocation: /new-\xeatre.xml\r\nContent-Length: 0\r\n\r\n")
    yield Case("to Latin-1", kind, [{PATH: latin, "/new-%EAtre.xml": _coded(BODY)}], titles(*ALL))
    hops = {f"/{at}": Redirect(f"/{at + 1}") for at in range(6)}
    yield Case("six in a row", kind, [hops | {"/5": _coded(BODY)}], titles(*ALL), "/0")
    moved = _coded(b"<redirect><newLocation>/new.xml</newLocation></redirect>")
    yield Case("a redirect document", kind, [{PATH: moved, NEW: _coded(BODY)}], refused("not-a-feed"))


def _leading(make: object) -> Answer:
    assert callable(make)
    return Computed(lambda request: _lead(make(request), status=301))


def _statuses() -> Iterator[Case]:
    kind = "statuses"
    for status, expected in {
        203: titles(*ALL),
        202: refused("unexpected-status"),
        206: refused("unexpected-status"),
        404: refused("publisher-status"),
        500: refused("publisher-status"),
    }.items():
        yield _case(f"{status} with a feed", kind, Status(status, (("Content-Type", XML),), BODY), expected)
    page = b"<!doctype html><html><head><title>404 Not found</title></head><body>404</body></html>"
    yield _case("200 with a page that says 404", kind, _coded(page), refused("not-a-feed"))
    first = Computed(
        lambda request: _coded(BODY) if request.headers["accept"].startswith("application/") else Status(406)
    )
    yield _case("only the first type that is accepted counts", kind, first)


REFRESHES = {
    "astro": '<!doctype html><title>Moved</title><meta http-equiv="refresh" content="0;url=/new.xml"><body>x',
    "capitals": '<HTML><HEAD><META HTTP-EQUIV="Refresh" CONTENT="0; URL=/new.xml"></HEAD></HTML>',
    "without url=": '<!doctype html><meta http-equiv="refresh" content="0; /new.xml">',
    "content first, quotes": "<html><meta content='1; url=\"new.xml\"' http-equiv=refresh></html>",
    "a comma": '<html><meta http-equiv="refresh" content="0,url=/new.xml"></html>',
    "behind a script": '<html><script>a="<b>"</script><meta http-equiv="refresh" content="0; url=/new.xml">',
    "in noscript": '<html><noscript><meta http-equiv="refresh" content="0;url=/new.xml"></noscript></html>',
}


def _page(text: str, *headers: tuple[str, str]) -> Answer:
    return Document(body=text.encode(), headers=(("Content-Type", "text/html; charset=utf-8"), *headers))


def _meta_refresh() -> Iterator[Case]:
    kind = "meta refresh"
    for name, text in REFRESHES.items():
        yield Case(name, kind, [{PATH: _page(text), NEW: _coded(BODY)}], titles(*ALL))
        looks: list[Look] = [feed(BODY), {PATH: _page(text), NEW: _coded(MORE)}]
        yield Case(f"{name}, a known feed", kind, looks, WITH_MORE)
    header = _page("<html>moved</html>", ("Refresh", "0; url=/new.xml"))
    yield Case("as a header field", kind, [{PATH: header, NEW: _coded(BODY)}], titles(*ALL))
    slow = _page('<html><meta http-equiv="refresh" content="600;url=/new.xml"></html>')
    yield Case("after ten minutes", kind, [{PATH: slow, NEW: _coded(BODY)}], refused("not-a-feed"))
    own = _page('<html><meta http-equiv="refresh" content="0;url=/feed.xml"></html>')
    yield _case("to itself", kind, own, refused("redirect-loop", "not-a-feed"))


LINK = '<link rel="alternate" type="application/rss+xml" title="{}" href="{}">'


def _discovery() -> Iterator[Case]:
    kind = "pages that announce feeds"
    site = "/site"
    good = {"/feed/": _coded(BODY)}
    comments = {"/comments/feed/": _coded(rss(items=" ").encode())}
    posts = LINK.format("A sky log", "/feed/")

    def page(name: str, head: str, more: Look | None = None, body: str = "") -> Case:
        text = f"<!DOCTYPE html><html><head><title>Log</title>{head}</head><body>{body}<p>x</p></body></html>"
        return Case(name, kind, [{site: _page(text), **good, **(more or {})}], titles(*ALL), site)

    yield page(
        "comments first", LINK.format("A sky log &raquo; Comments Feed", "/comments/feed/") + posts, comments
    )
    yield page(
        "comments first, in German",
        LINK.format("A sky log &raquo; Kommentar-Feed", "/comments/feed/") + posts,
        comments,
    )
    yield page("comments first, untitled", LINK.format("", "/comments/feed/") + posts, comments)
    yield page("the first is gone", LINK.format("A sky log", "/atom.xml") + posts)
    yield page("the first fails", LINK.format("A sky log", "/atom.xml") + posts, {"/atom.xml": Status(503)})
    yield page(
        "the first is a page",
        LINK.format("A sky log", "/atom.xml") + posts,
        {"/atom.xml": _page("<html><body>Log</body></html>")},
    )
    yield page(
        "the first is empty",
        LINK.format("A sky log", "/atom.xml") + posts,
        {"/atom.xml": _coded(rss(items=" ").encode())},
    )
    yield page(
        "a base behind it",
        LINK.format("A sky log", "feed/") + '<base href="/blog/">',
        {"/blog/feed/": _coded(BODY), "/feed/": Status(404)},
    )
    yield page(
        "a blank address before",
        '<link rel="alternate" type="application/rss+xml" href="">' + LINK.format("Log", " /feed/ "),
    )
    yield page("inside a comment", f"<!-- {LINK.format('Old', '/old/')} -->{posts}")
    yield page("without quotes, in capitals", "<LINK REL=ALTERNATE TYPE=application/rss+xml HREF=/feed/>")
    yield page("text/xml", '<link rel="alternate" type="text/xml" title="RSS" href="/feed/">')
    yield page("application/xml", '<link rel="alternate" type="application/xml" title="RSS" href="/feed/">')
    yield page("an entity", LINK.format("Log", "/x?a=1&amp;f=/feed/"), {"/x?a=1&f=/feed/": _coded(BODY)})
    yield page(
        "JSON of an interface before",
        '<link rel="alternate" type="application/json" href="/wp-json/wp/v2/pages/3">' + posts,
    )
    anchor = _page('<html><body><a href="/feed/">RSS</a></body></html>')
    yield Case("an anchor alone", kind, [{site: anchor, **good}], refused("not-a-feed"), site)
    yield page("links in the body", "", body=posts)
    yield Case(
        "the scheme feed:", kind, [{site: _schemed("feed:http://{}/feed/"), **good}], titles(*ALL), site
    )
    yield Case("the scheme feed://", kind, [{site: _schemed("feed://{}/feed/"), **good}], titles(*ALL), site)


def _schemed(address: str) -> Answer:
    return Computed(
        lambda request: _page(
            f"<html><head>{LINK.format('Log', address.format(request.headers['host']))}</head></html>"
        )
    )


def _always_unchanged(body: bytes, *headers: tuple[str, str]) -> Answer:
    """Answer a conditional request with 304, for any validator."""
    conditions = ("if-none-match", "if-modified-since")
    return Computed(
        lambda request: (
            Status(304) if any(name in request.headers for name in conditions) else _coded(body, *headers)
        )
    )


def _validators() -> Iterator[Case]:
    kind = "constant validators"
    constants = {
        "1970": [("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")],
        "1980": [("Last-Modified", "Tue, 01 Jan 1980 00:00:01 GMT")],
        "2041": [("Last-Modified", "Sat, 16 Nov 2041 19:11:00 GMT")],
        "an empty ETag": [("ETag", '""')],
        "an ETag of 0": [("ETag", '"0"')],
        "a weak empty ETag": [("ETag", 'W/""')],
        "1970 and an empty ETag": [("ETag", '""'), ("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")],
    }
    for name, headers in constants.items():
        looks = [{PATH: _always_unchanged(BODY, *headers)}, {PATH: _always_unchanged(MORE, *headers)}]
        yield Case(name, kind, looks, WITH_MORE)
    fixed = [("ETag", '"fixed"'), ("Last-Modified", "Mon, 01 Jun 2026 10:00:00 GMT")]
    looks = [{PATH: _always_unchanged(BODY, *fixed)}, {PATH: _always_unchanged(MORE, *fixed)}]
    yield Case("plausible ones, refreshed by a person", kind, looks, WITH_MORE, is_refreshed=True)
    week = [looks[0], *([looks[1]] * 9)]
    yield Case("plausible ones, after a week", kind, week, WITH_MORE)
    kind = "odd validators"
    for tag in ("abc", "'abc'", '"a b"c"', 'w/"abc"', '"abc', "W/abc"):
        yield Case(tag, kind, [{PATH: _tagged(BODY, tag)}, {PATH: _tagged(MORE, f"{tag}2")}], WITH_MORE)
    dated = ("Last-Modified", "2026-06-01 10:00:00")
    yield Case("a date of ISO", kind, [{PATH: _coded(BODY, dated)}, {PATH: _coded(MORE, dated)}], WITH_MORE)
    yield Case("304 unasked", kind, [feed(BODY), {PATH: Status(304)}, feed(MORE)], WITH_MORE)


def _tagged(body: bytes, tag: str) -> Answer:
    return Computed(
        lambda request: (
            Status(304) if request.headers.get("if-none-match") == tag else _coded(body, ("ETag", tag))
        )
    )


def _targets() -> Iterator[Case]:
    kind = "addresses"
    for target, asked in {
        "/t;x=1/feed.rss?a=1;b=2": "/t;x=1/feed.rss?a=1;b=2",
        "/t/~u/feed": "/t/~u/feed",
        "/t/feed?q=a+b%20c": "/t/feed?q=a+b%20c",
        "/t//feed": "/t//feed",
        "/t/feed?a=b&&c=&=d": "/t/feed?a=b&&c=&=d",
        "/t/feed?u=http://x.example/a?b=c": "/t/feed?u=http://x.example/a?b=c",
        "/t/feed?x[]=1&y={z}|w": "/t/feed?x%5B%5D=1&y=%7Bz%7D%7Cw",
        "/t/feed?q=%E9%FF": "/t/feed?q=%E9%FF",
        "/t/feed?cat=1%262": "/t/feed?cat=1%262",
    }.items():
        sent = rss(items=item(3, title="as asked")).encode()
        yield Case(
            target,
            kind,
            [{PATH: Status(404), "/t": Status(404), asked: _coded(sent)}],
            in_state("remembered", "as asked"),
            target,
        )
