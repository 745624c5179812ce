"""docs/faults.md part D: faulty XML and encodings, as a reader sees them.

Refused documents are checked like any other fault (`tests.faults.checks`); readable ones, at every place in a
chain.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from tests.answers import Answer, Computed, Document
from tests.faults.checks import each_strikes
from tests.feeds import an_item, atom, ids, own_ids, rss, texts
from tests.origin import ATOM, Origin
from tests.running import Proxy

FEED = atom(an_item("x", 9, "TEXT"))
DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>\n'


def body(content: bytes, media_type: str = ATOM) -> Answer:
    return Document(body=content, headers=(("Content-Type", media_type),))


def under(doctype: str, inside: str = "") -> Answer:
    """A feed with a document type that names /outside on its own host as HERE."""

    def answer(request: object) -> Answer:
        here = f"http://{request.headers['host']}/outside"  # type: ignore[attr-defined]
        text = f'<?xml version="1.0"?>\n{doctype}\n' + FEED.removeprefix(DECLARATION).decode()
        return body(text.replace("HERE", here).replace("TEXT", inside or "TEXT").encode())

    return Computed(answer)


def element(attributes: str = "", inside: str = "") -> bytes:
    return FEED.replace(b"TEXT", f"<b{attributes}>{inside}</b>".encode())


def many(attribute: str, count: int) -> str:
    return "".join(attribute.format(n, n) for n in range(count))


LONG = "x" * ((1 << 20) + 1)
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


REFUSED: list[tuple[str, str, dict[str, Answer]]] = [
    (
        "40",
        "dtd-forbidden",
        {
            "billion laughs": under(f'<!DOCTYPE feed [<!ENTITY l0 "ha">{LAUGHS}]>', "&l9;"),
            "quadratic entities": under(f'<!DOCTYPE feed [<!ENTITY q "{"q" * 50_000}">]>', "&q;" * 50_000),
            "parameter entity": under('<!DOCTYPE feed [<!ENTITY % p SYSTEM "HERE"> %p;]>'),
            "external entity": under('<!DOCTYPE feed [<!ENTITY e SYSTEM "HERE">]>', "&e;"),
            "external file": under('<!DOCTYPE feed [<!ENTITY e SYSTEM "file:///etc/passwd">]>', "&e;"),
            "external DTD and more": under('<!DOCTYPE feed SYSTEM "HERE" [<!ENTITY e "x">]>', "&e;"),
        },
    ),
    (
        "41",
        "dtd-forbidden",
        {
            "an entity of its own": under('<!DOCTYPE feed [<!ENTITY a "b">]>'),
            "HTML's as something else": under('<!DOCTYPE feed [<!ENTITY nbsp "&#38;lt;">]>', "&nbsp;"),
            "in an attribute": under('<!DOCTYPE feed [<!ENTITY a "b">]>', '<b a="&a;"/>'),
            "HTML's from elsewhere": under('<!DOCTYPE feed [<!ENTITY % HTMLlat1 SYSTEM "HERE">%HTMLlat1;]>'),
            "no end": under("<!DOCTYPE feed [<!-- "),
            "behind a public one": under('<!DOCTYPE feed PUBLIC "-//X//" "HERE" [%a;]>'),
        },
    ),
    # Slightly over the limit; tests/faults/test_memory.py shows the cost of a thousand times as much
    (
        "43",
        "xml-limit",
        {
            "depth": body(element(inside="<a>" * 300 + "</a>" * 300)),
            "attributes": body(element(many(" a{}=''", 300))),
            "declarations": body(element(many(" xmlns:p{}='u:{}'", 300))),
            "namespace": body(element(f" xmlns:p='u:{'x' * 2000}'")),
        },
    ),
    (
        "44",
        "xml-limit",
        {
            "attribute": body(element(f" a='{LONG}'")),
            "attribute name": body(element(f" {LONG}=''")),
            "element name": body(element(inside=f"<{LONG}/>")),
            "declared prefix": body(element(f" xmlns:{LONG}='u:u'")),
        },
    ),
    (
        "47",
        "unsupported-encoding",
        {
            "UTF-7": body(FEED.replace(b"utf-8", b"utf-7").replace(b"TEXT", b"\xe9")),
            "rot13": body(FEED.replace(b"utf-8", b"rot13").replace(b"TEXT", b"\xe9")),
            "unknown": body(FEED.replace(b"utf-8", b"x-no").replace(b"TEXT", b"\xe9")),
            "UTF-32 with its mark": body(FEED.decode().encode("utf-32")),
            "UTF-32": body(FEED.decode().encode("utf-32-be")),
        },
    ),
    ("47", "unsupported-format", {"XML 2.0": body(FEED.replace(b'"1.0"', b'"2.0"'))}),
]


@pytest.mark.fault("40", "41", "43", "44", "47")
@pytest.mark.parametrize(
    ("slug", "documents"),
    [pytest.param(*rest, id=f"row {row}, {rest[0]}") for row, *rest in REFUSED],
)
async def test_what_is_refused_has_its_reason(
    proxy: Proxy, origin: Origin, struck: Origin, slug: str, documents: dict[str, Answer]
) -> None:
    """Part D: 422 with the slug; no URL in a document gets a request."""
    struck.publish("/outside", "<!ELEMENT feed ANY>")
    await each_strikes(proxy, origin, struck, slug, 422, documents)
    assert struck.requests_for("/outside") == []


@pytest.mark.fault("42", "59")
@pytest.mark.parametrize("inside", ["about", "about &nbsp; &copy; it"], ids=["plain", "with entities"])
async def test_row_42_a_public_document_type_is_accepted_and_never_fetched(
    proxy: Proxy, origin: Origin, inside: str
) -> None:
    """RSS 0.91 has one with HTML's entities; the repair pass resolves those."""
    declared = f'<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "{origin.url("/rss-0.91.dtd")}">\n<rss'
    new, old = rss(an_item("b", 2, inside), prev_archive="/1"), rss(an_item("a", 1, inside), archive=True)
    origin.publish("/feed", new.replace(b"<rss", declared.encode(), 1), content_type="application/rss+xml")
    origin.publish("/1", old.replace(b"<rss", declared.encode(), 1), content_type="application/rss+xml")
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", ["b", "a"])
    expected = inside.replace("&nbsp;", "\xa0").replace("&copy;", "©")
    assert texts(reply.body) == dict.fromkeys("ab", expected)
    assert b"DOCTYPE" not in reply.body
    assert set(origin.counts()) == {"/feed", "/1"}


@dataclass(frozen=True)
class Odd:
    name: str
    change: Callable[[bytes], bytes]
    text: str = "TEXT"
    note: str | None = None
    media_type: str = ATOM


async def is_read(proxy: Proxy, origin: Origin, odd: Odd, under: str) -> None:
    """SUB and ARC: nothing is missing, the text is as intended, a note names the repair."""
    for feed, path, odd_one in (
        (f"{under}/alone", f"{under}/alone", atom(an_item("a", 1, "TEXT"), complete=True)),
        (f"{under}/feed", f"{under}/1", atom(an_item("a", 1, "TEXT"), archive=True)),
    ):
        origin.publish(f"{under}/feed", atom(an_item("b", 2), prev_archive=f"{under}/1"))
        origin.publish(path, odd.change(odd_one), content_type=odd.media_type)
        reply = await proxy.whole(origin.url(feed))
        assert (reply.status, reply.state) == (200, "complete"), odd.name
        assert texts(reply.body)["a"] == odd.text, odd.name
        notes = (await proxy.status(origin.url(feed)))["notes"]
        assert [(each["code"], each["url"]) for each in notes] == [(odd.note, origin.url(path))] * bool(
            odd.note
        )


def put(text: bytes) -> Callable[[bytes], bytes]:
    return lambda document: document.replace(b"TEXT", text)


def labelled(label: str, codec: str, text: str) -> Callable[[bytes], bytes]:
    def change(document: bytes) -> bytes:
        return document.decode().replace("utf-8", label).replace("TEXT", text).encode(codec)

    return change


def declaring(subset: str) -> Callable[[bytes], bytes]:
    doctype = f"<!DOCTYPE feed [{subset}]>\n<feed".encode()
    return lambda document: document.replace(b"<feed", doctype, 1).replace(b"TEXT", b"a&nbsp;&eacute;")


def followed_by(behind: bytes) -> Callable[[bytes], bytes]:
    return lambda document: document + behind


SETS = (
    '<!ENTITY % HTMLlat1 PUBLIC "-//W3C//ENTITIES Latin 1 for XHTML//EN" '
    '"http://www.w3.org/TR/xhtml1/DTD/xhtml-lat1.ent"> %HTMLlat1;'
)


def respelt(right: str, written: str) -> Callable[[bytes], bytes]:
    """Return a change of element names; start tags of the two names have attributes too."""

    def change(document: bytes) -> bytes:
        text = document.decode().replace(right, written)
        if written == "FEED>":
            text = text.replace("<feed ", "<FEED ")
        if "<entries>" in written:
            text = text.replace("</entry>", "</entry></entries>")
        return text.encode()

    return change


READ = {
    "45": [
        Odd("halves of a character", put(b"&#55357;&#56832;&#xD83D;&#xDE00;"), "😀😀", "DocumentRepaired"),
        Odd("undeclared entity", put(b"a&nbsp;b&eacute;"), "a\xa0bé", "DocumentRepaired"),
        Odd("bare ampersand", put(b"R&D & a=1&b=2"), "R&D & a=1&b=2", "DocumentRepaired"),
        Odd("undeclared prefix", put(b"TEXT<media:x/>"), "TEXT", "DocumentRepaired"),
        Odd("control characters", put(b"TE\x01\x0bXT\x1f"), "TEXT", "DocumentRepaired"),
        Odd(
            "blanks before the declaration", lambda document: b"\n  \n" + document, "TEXT", "DocumentRepaired"
        ),
        Odd(
            "a warning before the declaration",
            lambda document: b"<br />\n<b>Warning</b>\n" + document,
            "TEXT",
            "DocumentRepaired",
        ),
        Odd(
            "a warning before the declaration of another encoding",
            lambda document: (
                b"<br />\n<b>Warning</b>\n"
                + document.replace(b"utf-8", b"iso-8859-1").replace(b"TEXT", b"caf\xe9")
            ),
            "café",
            "DocumentRepaired",
        ),
    ],
    "46": [
        Odd("UTF-8 with its mark", labelled("utf-8", "utf-8-sig", "é 東"), "é 東"),
        Odd("UTF-16 with its mark", labelled("utf-16", "utf-16", "é 東"), "é 東"),
        Odd("UTF-16 without a mark", labelled("utf-16", "utf-16-le", "é 東"), "é 東"),
        Odd("UTF-16, big end first", labelled("utf-16", "utf-16-be", "é 東"), "é 東"),
        Odd("gb2312", labelled("gb2312", "gb18030", "你好"), "你好"),
        Odd("shift_jis", labelled("shift_jis", "cp932", "東京①"), "東京①"),
        Odd("latin-1", labelled("iso-8859-1", "cp1252", "é “x”"), "é “x”"),
        Odd("a label of Python's ignorance", labelled("csISO88598I", "iso8859-8", "שלום"), "שלום"),
        *(
            Odd(f"utf-8 as {label}", labelled(label, "utf-8", "é 東"), "é 東", "EncodingRetried")
            for label in ("x-no-such", "utf-7", "rot13", "base64", "utf-32")
        ),
        *(
            Odd(f"utf-8 as {label} by HTTP", put("é".encode()), "é", media_type=f"{ATOM}; charset={label}")
            for label in ("utf-7", '"utf-8;"', "utf-8,", "hex")
        ),
    ],
    "46a": [
        Odd("latin-1 as utf-8", labelled("utf-8", "latin-1", "café"), "café", "EncodingRetried"),
        Odd("windows-1252 as utf-8", labelled("utf-8", "cp1252", "“é” Ã©"), "“é” Ã©", "EncodingRetried"),
        Odd("utf-8 as latin-1", labelled("iso-8859-1", "utf-8", "é 東"), "é 東", "EncodingRetried"),
        Odd(
            "utf-8 as koi8-r by HTTP",
            labelled("utf-8", "utf-8", "é"),
            "é",
            "EncodingRetried",
            f"{ATOM};charset=koi8-r",
        ),
        *(
            Odd(
                f"{label} as utf-8 by HTTP",
                labelled(label, label, text),
                text,
                "EncodingRetried",
                f"{ATOM}; charset=utf-8",
            )
            for label, text in (
                ("koi8-r", "Река"),
                ("iso-8859-2", "Żółw"),
                ("gbk", "河水"),
                ("utf-16-le", "é"),
            )
        ),
        Odd("CESU-8", put("\ud83d\ude00 é".encode("utf-8", "surrogatepass")), "😀 é", "EncodingRetried"),
        Odd("a mark of UTF-16", lambda document: b"\xff\xfe" + document, "TEXT", "EncodingRetried"),
    ],
    "47a": [
        Odd(
            "XML 1.1",
            lambda document: document.replace(b'"1.0"', b'"1.1"', 1),
            "TEXT",
            "DocumentRepaired",
        ),
    ],
    "48": [
        Odd(
            "the mark before HTTP",
            labelled("iso-8859-2", "utf-8-sig", "ž"),
            "ž",
            media_type=f"{ATOM}; charset=iso-8859-2",
        ),
        Odd(
            "HTTP before the declaration",
            labelled("utf-8", "iso-8859-2", "ž"),
            "ž",
            media_type=f'{ATOM};charset="ISO-8859-2"',
        ),
        Odd("the declaration alone", labelled("iso-8859-2", "iso-8859-2", "ž"), "ž"),
        Odd("text/xml too", labelled("iso-8859-2", "iso-8859-2", "ž"), "ž", media_type="text/xml"),
    ],
    "150": [
        Odd(f"[{subset[:24]}]", declaring(subset), "a\xa0é", "DocumentRepaired")
        for subset in (
            "",
            "<!-- ]> --><?a ]> ?>",
            '<!ENTITY nbsp "&#160;"><!ENTITY eacute "é">',
            '<!ELEMENT feed ANY><!ATTLIST content type CDATA "html"><!NOTATION a SYSTEM "]>">',
            SETS,
        )
    ],
    "49a": [
        *(
            Odd(name, followed_by(behind), note="DocumentRepaired")
            for name, behind in (
                ("a script", b"\n<script>document.write('<entry>')</script>"),
                ("text", b"\nWarning: something in feed.php"),
                ("a comment that is none", b"\n<!-- page -- cached"),
                ("a second end tag", b"</feed>"),
                ("a mixture", b"\n<!-- cached --><junk/> & more"),
            )
        ),
    ],
    "148": [
        *(
            Odd(f"{written} for {right}", respelt(right, written), note="DocumentRepaired")
            for right, written in (
                ("http://www.w3.org/2005/Atom", "https://www.w3.org/2005/Atom"),
                ("http://www.w3.org/2005/Atom", "http://w3.org/2005/atom/"),
                ("http://www.w3.org/2005/Atom", ""),
                ("http://www.w3.org/2005/Atom", "urn:nobody-s"),
                ("/syndication/history/1.0", "/syndication/history/1.0/"),
                ("entry>", "Entry>"),
                ("feed>", "FEED>"),
                ("<entry>", '<entry xmlns="">'),
                ("<entry>", "<entries><entry>"),
                ("entry>", "item>"),
            )
        ),
    ],
    "149": [
        Odd(
            "an entry that is not closed",
            lambda document: document.replace(b"</entry>", b"", 1),
            note="DocumentRepaired",
        ),
    ],
}


@pytest.mark.fault("45", "46", "46a", "47a", "48", "49a", "148", "149", "150")
@pytest.mark.parametrize("row", READ)
async def test_what_is_odd_is_read_as_it_was_meant(proxy: Proxy, origin: Origin, row: str) -> None:
    """Rows 45 to 49a; RFC 7303, 3: mark, HTTP, declaration. Each odd document, alone and as an archive."""
    for number, odd in enumerate(READ[row]):
        await is_read(proxy, origin, odd, f"/{number}")
    body = (await proxy.whole(origin.url("/0/alone"))).body
    assert b"version='1.1'" not in body
    assert b'version="1.1"' not in body


@pytest.mark.fault("150")
async def test_row_150_a_harmless_subset_asks_for_nothing(proxy: Proxy, origin: Origin) -> None:
    """Row 150: SUB; W3C's entities at the publisher's own address are not fetched, no attribute is added."""
    here = origin.url("/xhtml-lat1.ent")
    declared = f'''<!DOCTYPE feed PUBLIC "-//X//" "{here}" [
        <!ENTITY % HTMLlat1 PUBLIC "-//W3C//ENTITIES Latin 1 for XHTML//EN" "{here}"> %HTMLlat1;
        <!ATTLIST entry added CDATA "ADDED">]><feed'''
    origin.publish("/feed", FEED.replace(b"TEXT", b"&eacute;").replace(b"<feed", declared.encode(), 1))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.status, texts(reply.body)) == (200, {"x": "é"})
    assert b"ADDED" not in reply.body
    assert origin.requests_for("/xhtml-lat1.ent") == []


@pytest.mark.fault("151")
async def test_row_151_json_that_is_almost_json_is_read(proxy: Proxy, origin: Origin) -> None:
    """Row 151: SUB; the reader gets JSON, and the notes show the publisher its faults."""
    item = '{"id":"a","content_text":"one\ntwo\tit\\\'s",}'
    body = (
        f'{{"version":"https://jsonfeed.org/version/1.1","title":"T",\ufeff"items":[{item},{item[:-2]}}},]}}'
    )
    origin.publish("/feed", body.replace('"a"', '"b"', 1).encode(), content_type="text/html")
    reply = await proxy.whole(origin.url("/feed"))
    items = json.loads(reply.body)["items"]
    assert [(each["id"], each["content_text"]) for each in items] == [
        ("b", "one\ntwo\tit's"),
        ("a", "one\ntwo\tit's"),
    ]
    (note,) = (await proxy.status(origin.url("/feed")))["notes"]
    assert note["code"] == "DocumentRepaired"
    assert "(blanks, commas, escapes)" in note["text"]


@pytest.mark.fault("45")
@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"<br />\n<b>Warning</b>: x in <b>y</b><br />\n" + text,
        lambda text: b"Warning: x in y on line 3\n" + text,
        lambda text: text.replace(b'<rss version="2.0"', b"<rss", 1).replace(b">", b"", 1),
    ],
    ids=["markup", "text", "no end of the root's tag"],
)
async def test_row_45_what_stands_before_the_root_is_dropped(
    proxy: Proxy, origin: Origin, change: Callable[[bytes], bytes]
) -> None:
    """Row 45: RSS without an XML declaration, behind a server's warning or in an unfinished tag."""
    body = rss(an_item("b", 2), an_item("a", 1), complete=True)
    origin.publish("/feed", change(body[body.index(b"<rss") :]))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.status, reply.state, own_ids(reply.body)) == (200, "complete", ["b", "a"])
    (note,) = (await proxy.status(origin.url("/feed")))["notes"]
    assert note["code"] == "DocumentRepaired"


def cut(document: bytes) -> bytes:
    return document[: document.rindex(b"<content>") + 12]


@pytest.mark.fault("49")
@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (cut, ["b"]),
        (lambda document: document[: document.rindex(b"</entry>") - 3], ["b"]),
        (lambda document: document[: document.rindex(b"</feed>")], ["b", "a"]),
        (lambda document: document + document, ["b", "a"]),
    ],
    ids=["in an entry", "in an end tag", "without its end", "twice"],
)
async def test_row_49_whole_entries_of_a_broken_document_are_kept(
    proxy: Proxy, origin: Origin, change: Callable[[bytes], bytes], kept: list[str]
) -> None:
    """SUB and ARC: 200, partial, until it is whole."""
    alone, archive = (
        atom(an_item("b", 2), an_item("a", 1), archive=each, complete=not each) for each in (False, True)
    )
    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/1"))
    for feed, path, document, new in (("/alone", "/alone", alone, []), ("/feed", "/1", archive, ["c"])):
        url = origin.url(feed)
        origin.publish(path, change(document))
        reply = await proxy.whole(url)
        assert (reply.status, reply.state, ids(reply.body)[1:]) == (200, "partial", new + kept)
        assert b"complete/>" not in reply.body
        (missing,) = (await proxy.status(url))["missing"]
        assert (missing["url"], missing["reason"]) == (origin.url(path), "truncated")
        origin.publish(path, document)
        reply = await proxy.refreshed(url)
        assert (reply.state, own_ids(reply.body)) == ("complete", [*new, "b", "a"])


@pytest.mark.fault("49b")
@pytest.mark.parametrize("lacks", ["</rss>", ">", "s>\n"])
async def test_row_49b_what_lacks_only_its_last_end_tag_is_whole(
    proxy: Proxy, origin: Origin, lacks: str
) -> None:
    """Row 49b: SUB and ARC of RSS: complete, with a note, and readers get its entries."""
    alone = rss(an_item("b", 2), an_item("a", 1), complete=True)
    archive = rss(an_item("b", 2), an_item("a", 1), archive=True)
    origin.publish("/feed", rss(an_item("c", 3), prev_archive="/1"))
    for feed, path, document, new in (("/alone", "/alone", alone, []), ("/feed", "/1", archive, ["c"])):
        url = origin.url(feed)
        origin.publish(path, document.rstrip()[: -len(lacks.strip())] + b"\n" * lacks.count("\n"))
        reply = await proxy.whole(url)
        assert (reply.status, reply.state) == (200, "complete")
        assert own_ids(reply.body) == [*new, "b", "a"]
        (note,) = (await proxy.status(url))["notes"]
        assert (note["code"], note["url"]) == ("DocumentRepaired", origin.url(path))


@pytest.mark.fault("45")
async def test_row_45_a_misspelt_end_tag_of_a_title_is_not_shown(proxy: Proxy, origin: Origin) -> None:
    """Row 45: the reader gets the intended title, and all entries."""
    body = rss(an_item("b", 2), an_item("a", 1), complete=True)
    title = body[body.rindex(b"<title>") : body.rindex(b"</title>")]
    origin.publish("/feed", body.replace(title + b"</title>", title + b"</titel>"))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, own_ids(reply.body)) == ("complete", ["b", "a"])
    assert title + b"</title>" in reply.body
    assert b"titel" not in reply.body


NO_HOSTS = ["a\u2100b", "127.0.0.1\uff1a80", "[zz]", "[1.2.3.4]", "[]", "[::1"]
"""Text in place of a host, refused as a host by browsers (URL Standard, 3.5)."""
BROWSER = {"Accept": "text/html", "Accept-Encoding": "identity"}


@pytest.mark.fault("126")
async def test_row_126_a_site_with_a_host_that_is_none_is_left_out(proxy: Proxy, origin: Origin) -> None:
    """Row 126: the page of its entries shows the feed's own address in its place, the lists none."""
    for number, host in enumerate(NO_HOSTS):
        links = f'<link href="http://{host}/a"/><link rel="enclosure" href="http://{host}/b"/>'
        entry = f"<entry><id>urn:a</id>{links}</entry>"
        origin.publish(f"/{number}", atom(extra=f'<link href="http://{host}/"/>{entry}'))
        url = origin.url(f"/{number}")
        assert (await proxy.get(url)).status == 200, host
        page = await proxy.ask("GET", "/view", params={"url": url}, headers=BROWSER)
        assert page.status == 200, host
        assert f'<a href="{url}" rel="noopener noreferrer nofollow">' in page.body.decode(), host
    assert b"htmlUrl" not in (await proxy.ask("GET", "/opml")).body


@pytest.mark.fault("126")
async def test_row_126_an_interface_with_a_host_that_is_none_ends_no_walk(
    proxy: Proxy, origin: Origin
) -> None:
    """Row 126: a WordPress feed with such header fields is read, and no error is logged."""
    items = [an_item(name, number) for number, name in enumerate("abcdefghij")]
    document = rss(*items, extra="<generator>https://wordpress.org/?v=6.5</generator>")
    with capture_logs() as logs:
        for number, host in enumerate(NO_HOSTS):
            link = ("Link", f'<http://{host}/wp-json/>; rel="https://api.w.org/"')
            origin.publish(f"/{number}/feed/", document, headers=[link])
            assert (await proxy.whole(origin.url(f"/{number}/feed/"))).state == "remembered", host
    assert "refresh.failed" not in {line["event"] for line in logs}
