"""Cases of documents: odd names and namespaces, document types, encodings, broken text, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.field.cases import (
    ALL,
    Case,
    Expected,
    atom,
    entry,
    feed,
    holds,
    in_state,
    item,
    rdf,
    refused,
    rss,
    titles,
)
from wholefeed.core.model import ATOM_NS

WORD = "Grün über Łomża – 3"
CYRILLIC = "Ночное небо над рекой"
ATOM_NAMESPACES = {
    "a slash behind": "http://www.w3.org/2005/Atom/",
    "without www": "http://w3.org/2005/Atom",
    "empty": "",
    "of Atom 0.3 without #": "http://purl.org/atom/ns",
    "of Atom 0.3 with https": "https://purl.org/atom/ns#",
    "a # behind": "http://www.w3.org/2005/Atom#",
    "in capitals": "http://www.w3.org/2005/ATOM",
    "in small letters": "http://www.w3.org/2005/atom",
    "https and a slash": "https://www.w3.org/2005/Atom/",
    "https": "https://www.w3.org/2005/Atom",
    "a URN": "urn:ietf:params:xml:ns:atom",
    "blanks around": f" {ATOM_NS} ",
    "https without www": "https://w3.org/2005/Atom",
    "a host in capitals": "http://WWW.W3.ORG/2005/Atom",
}
RSS_NAMESPACES = {
    "of the board": "http://www.rssboard.org/rss-specification",
    "of Harvard": "http://blogs.law.harvard.edu/tech/rss",
    "of iTunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "of RSS 1.0": "http://purl.org/rss/1.0/",
    "of RSS 2": "http://backend.userland.com/rss2",
    "of Atom": ATOM_NS,
    "of content": "http://purl.org/rss/1.0/modules/content/",
    "of nobody": "http://nobody.example/ns",
}
MODULES = {RSS_NAMESPACES[name] for name in ("of iTunes", "of content", "of nobody")}
NONSENSE_LABELS = (
    *(
        "utf-8;",
        "utf-8,",
        "utf8mb4",
        "utf-8.",
        "UTF_8",
        "UTF 8",
        "utf-7",
        "utf-32",
        "utf-32le",
        "utf-16",
        "ucs-2",
    ),
    *(
        "ISO-10646-UCS-4",
        "iso-10646-ucs-2",
        "iso-8859",
        "ansi",
        "hex",
        "unicode",
        "unicode_escape",
        "cp65001",
    ),
    *(
        "latin",
        "X-UNKNOWN",
        "utf-ebcdic",
        "cp037",
        "gb2312",
        "EUC-JP",
        "binary",
        "none",
        "'utf-8'",
        "utf-8utf-8",
    ),
    *(
        "ISO-8859-1,utf-8",
        "utf8",
        "rot13",
        "idna",
        "punycode",
        "base64",
        "charset=utf-8",
        "undefined",
        "mbcs",
    ),
)
LABELLED = {
    "windows-1251": CYRILLIC,
    "koi8-r": CYRILLIC,
    "iso-8859-5": CYRILLIC,
    "iso-8859-2": "Żółw nad Łódką",
    "shift_jis": "夜空の記録、三日目の観測",
    "euc-jp": "夜空の記録、三日目の観測",
    "gbk": "夜空记录第三天的观测结果",
    "big5": "夜空記錄第三天的觀測結果",
    "euc-kr": "밤하늘 기록 세 번째 관측",
    "windows-1253": "Νυχτερινός ουρανός",
    "windows-1255": "שמי הלילה מעל הנהר",
}


def cases() -> Iterator[Case]:
    yield from _namespaces()
    yield from _names()
    yield from _chains()
    yield from _document_types()
    yield from _encodings()
    yield from _characters()
    yield from _texts()
    yield from _json()


def _case(
    name: str, kind: str, body: str | bytes, expected: Expected | None = None, media: str = "application/xml"
) -> Case:
    return Case(name, kind, [feed(body, media)], expected or titles(*ALL))


def _namespaces() -> Iterator[Case]:
    kind = "Atom's namespace"
    for name, uri in ATOM_NAMESPACES.items():
        yield _case(name, kind, atom(namespace=f' xmlns="{uri}"'))
        yield _case(f"{name}, on entries", kind, atom(items=_on_entries(uri)))
        if uri:  # XML allows no prefix for it
            yield _case(f"{name}, prefixed", kind, _prefixed(atom(namespace=f' xmlns:a="{uri}"')))
    yield _case("a prefix that is not declared", kind, _prefixed(atom(namespace=""), "atom"))
    kind = "a default namespace in RSS"
    for name, uri in RSS_NAMESPACES.items():
        yield _case(f"{name}, on the root", kind, rss().replace("<rss ", f'<rss xmlns="{uri}" '))
        yield _case(f"{name}, on the channel", kind, rss().replace("<channel>", f'<channel xmlns="{uri}">'))
        if uri not in MODULES:  # the children of such items mean something else
            yield _case(f"{name}, on items", kind, rss().replace("<item>", f'<item xmlns="{uri}">'))
            yield _case(f"{name}, with a prefix on all", kind, _all_prefixed(uri))
        yield _case(f"{name}, with a prefix on the channel", kind, _prefixed_channel(uri))
    kind = "RDF's names"
    prefixed = rdf().replace('xmlns="http', 'xmlns:r="http')
    for tag in ("channel", "item", "title", "link", "description"):
        prefixed = (
            prefixed.replace(f"<{tag}>", f"<r:{tag}>")
            .replace(f"<{tag} ", f"<r:{tag} ")
            .replace(f"</{tag}>", f"</r:{tag}>")
        )
    yield _case("RSS with a prefix", kind, prefixed)
    yield _case("a root in small letters", kind, rdf().replace("rdf:RDF", "rdf:rdf"))
    yield _case("https", kind, rdf().replace("http://www.w3.org/1999", "https://www.w3.org/1999"))
    yield _case("RSS with https", kind, rdf().replace("http://purl.org/rss", "https://purl.org/rss"))
    yield _case("RSS without its slash", kind, rdf().replace("rss/1.0/", "rss/1.0"))
    yield _case("RDF without its #", kind, rdf().replace("syntax-ns#", "syntax-ns"))
    yield _case("RDF as the default", kind, rdf().replace("rdf:RDF xmlns:rdf", "RDF xmlns:rdf"))
    kind = "namespaces of extensions"
    long = "".join(
        item(night, more=f"<content:encoded><![CDATA[<p>Long {night}</p>]]></content:encoded>")
        for night in (2, 1)
    )
    declared = '<rss xmlns:content="https://purl.org/rss/1.0/modules/content/" '
    yield _case("https", kind, rss(items=long).replace("<rss ", declared), holds("<![CDATA[<p>Long 2</p>]]>"))
    link = f'<link xmlns="{ATOM_NS}" rel="self" href="http://sky.example/rss"/>'
    yield _case("Atom's link without a prefix", kind, rss(head=link))


def _prefixed(text: str, prefix: str = "a") -> str:
    """Give every tag of an Atom document a prefix."""
    head, _, rest = text.partition("?>")
    return head + "?>" + rest.replace("</", "\0").replace("<", f"<{prefix}:").replace("\0", f"</{prefix}:")


def _all_prefixed(uri: str) -> str:
    return _prefixed(rss(), "r").replace("<r:rss ", f'<r:rss xmlns:r="{uri}" ')


def _prefixed_channel(uri: str) -> str:
    text = rss().replace("<channel>", "<r:channel>").replace("</channel>", "</r:channel>")
    return text.replace("<rss ", f'<rss xmlns:r="{uri}" ')


def _on_entries(uri: str) -> str:
    return "".join(entry(night).replace("<entry>", f'<entry xmlns="{uri}">') for night in (3, 2, 1))


def _names() -> Iterator[Case]:
    kind = "names in another case"
    for name in ("item", "channel", "rss"):
        for odd in (name.upper(), name.capitalize()):
            yield _case(odd, kind, _renamed(rss(), name, odd))
    for name in ("entry", "feed"):
        for odd in (name.upper(), name.capitalize()):
            yield _case(odd, kind, _renamed(atom(), name, odd))
    yield _case("Item and Title", kind, _renamed(_renamed(rss(), "item", "Item"), "title", "Title"))
    yield _case("Rss, Version", kind, rss().replace("<rss version", "<Rss Version").replace("</rss", "</Rss"))
    yield _case("every name", kind, _renamed(*_upper_all(rss())))
    yield _case("pubdate", kind, _renamed(rss(), "pubDate", "pubdate"))
    kind = "entries elsewhere"
    items = "".join(item(night) for night in (3, 2, 1))
    start, end = rss(items="@").split("@")
    yield _case("in <items>", kind, f"{start}<items>{items}</items>{end}")
    yield _case("in <entries>", kind, atom(items=f"<entries>{''.join(map(entry, (3, 2, 1)))}</entries>"))
    yield _case(
        "in a wrapper of each",
        kind,
        f"{start}{items.replace('<item>', '<row><item>').replace('</item>', '</item></row>')}{end}",
    )
    yield _case(
        "before the channel",
        kind,
        f'<rss version="2.0">{items}<channel><title>A sky log</title></channel></rss>',
    )
    yield _case("without a channel", kind, f'<?xml version="1.0"?><rss version="2.0">{items}</rss>')
    yield _case("in a root <channel>", kind, rss().replace('<rss version="2.0">', "").replace("</rss>", ""))
    yield _case("items in Atom", kind, atom(items=items))
    yield _case("entries in RSS", kind, rss(items="".join(map(entry, (3, 2, 1)))))
    many = "".join(
        item(night, more=" " * 2000).replace(f"night-{night}<", f"night-{night}-{at}<")
        for at in range(200)
        for night in (2, 1)
    )
    yield _case(
        "much in a wrapper",
        kind,
        f"{start}<items>{many}</items>{end}",
        titles(*["Night 2"] * 200, *["Night 1"] * 200),
    )
    yield _case("none", kind, rss(items=" "), in_state("remembered"))
    cut = atom().replace("</entry>", "", 1)
    yield _case("Atom's end tag is missing", kind, cut)
    yield _case("all of Atom's end tags are missing", kind, atom().replace("</entry>", ""))
    kind = "entries that left"
    seen = titles(*(f"Night {night}" for night in range(6, 0, -1)))
    for write, old, new in (
        (rss, "item>", "ITEM>"),
        (rss, "<item>", '<item xmlns="http://x.example/">'),
        (rss, "<channel>", '<channel xmlns="http://x.example/">'),
        (atom, "entry>", "Entry>"),
        (atom, "<entry>", '<entry xmlns="">'),
        (atom, "<entry>", '<entry xmlns="https://www.w3.org/2005/Atom">'),
    ):
        bodies = [write(*nights).replace(old, new) for nights in ((3, 2, 1), (6, 5, 4))]
        declared = [body.replace("<rss ", '<rss xmlns:x="http://x.example/" ') for body in bodies]
        yield Case(new, kind, [feed(body) for body in declared], seen)
        right = feed(write(3, 2, 1))
        yield Case(f"{new}, not from the beginning", kind, [right, feed(declared[1])], seen)


def _renamed(text: str, name: str, odd: str) -> str:
    for before, after in (("<", ">"), ("<", " "), ("</", ">")):
        text = text.replace(f"{before}{name}{after}", f"{before}{odd}{after}")
    return text


def _upper_all(text: str) -> tuple[str, str, str]:
    for name in ("rss", "channel", "item", "title", "link", "guid", "description"):
        text = _renamed(text, name, name.upper())
    return text, "pubDate", "PUBDATE"


def _chains() -> Iterator[Case]:
    kind = "namespaces of a chain"
    older = "http://purl.org/syndication/history/1.0"
    spellings = {
        "as it should be": (ATOM_NS, older),
        "https": ("https://www.w3.org/2005/Atom", older.replace("http", "https")),
        "a slash": (f"{ATOM_NS}/", f"{older}/"),
        "small letters": (ATOM_NS.lower(), older),
        "without www": ("http://w3.org/2005/Atom", older.upper().replace("HTTP", "http")),
    }
    for name, (uri, history) in spellings.items():
        root = f'<rss xmlns:atom="{uri}" xmlns:fh="{history}" '
        link = '<atom:link rel="prev-archive" href="/old.xml"/>'
        new = rss(3, head=link).replace("<rss ", root)
        old = rss(2, 1, head="<fh:archive/>").replace("<rss ", root)
        yield Case(name, kind, [feed(new) | feed(old, path="/old.xml")], in_state("complete", *ALL))
        whole = rss(head="<fh:complete/>").replace("<rss ", root)
        yield Case(f"{name}, fh:complete", kind, [feed(whole)], in_state("complete", *ALL))
        own = atom(3, namespace=f' xmlns="{uri}" xmlns:fh="{history}"').replace(
            "<author>", link.replace("atom:", "") + "<author>"
        )
        aged = atom(2, 1, namespace=f' xmlns="{uri}" xmlns:fh="{history}"').replace(
            "<author>", "<fh:archive/><author>"
        )
        yield Case(
            f"{name}, Atom", kind, [feed(own) | feed(aged, path="/old.xml")], in_state("complete", *ALL)
        )


def _document_types() -> Iterator[Case]:
    kind = "document types"
    external = 'PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://dtd.example/rss-0.91.dtd"'
    declared = '<!ENTITY nbsp "&#160;"><!ENTITY mdash "&#8212;"><!ENTITY eacute "&#233;">'
    latin = (
        '<!ENTITY % HTMLlat1 PUBLIC "-//W3C//ENTITIES Latin 1 for XHTML//EN" "http://dtd.example/lat1.ent">'
    )
    subsets = {
        "empty": "rss []",
        "a comment": "rss [ <!-- no ]> here --> ]",
        "an element and a notation": "rss [<!ELEMENT rss ANY><!NOTATION n SYSTEM 'n'>]",
        "an attribute": "rss [<!ATTLIST rss version CDATA '9.9'>]",
        "an instruction": "rss [<?keep ]> ?>]",
        "html": "html",
        "external": f"rss {external}",
    }
    for name, subset in subsets.items():
        yield _case(name, kind, rss().replace("<rss ", f"<!DOCTYPE {subset}>\n<rss "))
    named = rss(
        items="".join(item(night, title=f"Night&nbsp;{night} &mdash; caf&eacute;") for night in (3, 2, 1))
    )
    read = titles(*(f"Night\xa0{night} — café" for night in (3, 2, 1)))
    for name, subset in {
        "external, HTML's names": f"rss {external}",
        "HTML's names declared": f"rss [{declared}]",
        "both": f"rss {external} [{declared}]",
        "the parameter entity of RSS 1.0": f"rss [{latin} %HTMLlat1;]",
        "the same, not used": f"rss [{latin}]",
    }.items():
        yield _case(name, kind, named.replace("<rss ", f"<!DOCTYPE {subset}>\n<rss "), read)


def _encodings() -> Iterator[Case]:
    body = rss(items=item(3, title=WORD) + item(2))
    read = titles(WORD, "Night 2")
    kind = "labels that are nonsense"
    for label in NONSENSE_LABELS:
        yield _case(f"HTTP: {label}", kind, body, read, f"text/xml; charset={label}")
        declared = label.replace("'", "")
        yield _case(f"declared: {label}", kind, body.replace("UTF-8", declared, 1), read)
    yield _case("HTTP: in odd quotes", kind, body, read, 'text/xml; charset="utf-8;"')
    yield _case(
        "declared utf-16 behind a mark",
        kind,
        b"\xef\xbb\xbf" + body.replace("UTF-8", "utf-16", 1).encode(),
        read,
    )
    yield _case("UTF-16 without a mark, declared utf-8", kind, body.encode("utf-16-le"), read)
    kind = "HTTP says utf-8, the declaration is right"
    for label, words in LABELLED.items():
        text = rss(items=item(3, title=words) + item(2)).replace("UTF-8", label, 1).encode(label)
        yield _case(label, kind, text, titles(words, "Night 2"), "text/xml; charset=utf-8")
        yield _case(
            f"{label}, behind a blank line",
            kind,
            b"\r\n " + text,
            titles(words, "Night 2"),
            "text/xml; charset=utf-8",
        )
        yield _case(
            f"{label}, HTTP alone",
            kind,
            text.replace(label.encode(), b"utf-8", 1),
            titles(words, "Night 2"),
            f"text/xml; charset={label}",
        )
        yield _case(
            f"{label}, but it is UTF-8",
            kind,
            text.decode(label).encode(),
            titles(words, "Night 2"),
            f"text/xml; charset={label}",
        )
    latin = rss(items=item(3, title="Grün") + item(2)).encode("latin-1")
    yield _case("nobody is right", kind, latin, titles("Grün", "Night 2"), "text/xml; charset=utf-8")
    kind = "a few bad bytes"
    for name, odd in {
        "emoji": b"cut \xf0\x9f\x98...",
        "CJK": b"cut \xe6\x97...",
        "quote": b"cut \xe2\x80",
    }.items():
        text = (
            rss(items=item(3, title="Café") + item(2, title="cut"))
            .encode()
            .replace(b"<title>cut", b"<title>" + odd)
        )
        yield _case(name, kind, text, holds("Café", "night-2"))


def _characters() -> Iterator[Case]:
    kind = "surrogates"
    pair = "Sky \U0001f52d far"
    yield _case(
        "as two references",
        kind,
        rss(items=item(3, title="Sky &#55357;&#56621; far") + item(2, title="Sky &#xD83D;&#xDD2D; far")),
        titles(pair, pair),
    )
    yield _case("one alone", kind, rss(items=item(3, title="Sky &#56841; far")), titles("Sky � far"))
    cesu = rss(items=item(3, title=CYRILLIC) + item(2, title="Sky @ far")).encode()
    yield _case("as UTF-8", kind, cesu.replace(b"@", b"\xed\xa0\xbd\xed\xb4\xad"), titles(CYRILLIC, pair))
    kind = "characters"
    yield _case("NUL at every second place", kind, rss().encode("utf-16-le"))
    yield _case("two marks", kind, "\ufeff\ufeff" + rss())
    yield _case("a mark inside", kind, rss().replace("?>", "?>\ufeff"))
    yield _case("lines end with CR", kind, rss().replace("\n", "\r"))
    yield _case(
        "noncharacters", kind, rss(items=item(3, title="a\uffffb") + item(2)), holds("night-3", "night-2")
    )
    kind = "declarations"
    yield _case("phpxml", kind, rss().replace("<?xml ", "<?phpxml "))
    yield _case("typographic quotes", kind, rss(declaration="<?xml version=”1.0” encoding=”UTF-8”?>"))
    escaped = rss().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield _case("an escaped document", kind, escaped, refused("not-a-feed"))
    wrapped = f'<?xml version="1.0"?>\n<string xmlns="http://tempuri.org/">{escaped}</string>'
    yield _case("in a <string>", kind, wrapped, refused("not-a-feed"))
    yield _case(
        "a browser's view of it",
        kind,
        f"<html><head><style>b {{}}</style></head><body>{rss(declaration='')}<p>x</p></body></html>",
    )
    yield _case("behind a warning", kind, f"<br />\n<b>Warning</b>: date() & so on<br />\n{rss()}")
    for media in ("text/html", "text/plain", "application/octet-stream", "image/png", "text/xml"):
        yield _case(media, "media types", rss(), media=media)


def _texts() -> Iterator[Case]:
    kind = "texts"
    inner = '<content type="application/atom+xml"><entry xmlns="http://www.w3.org/2005/Atom"><id>in</id><title>In</title></entry></content>'
    yield _case(
        "an entry inside an entry",
        kind,
        atom(items="".join(entry(night, content=inner) for night in (3, 2, 1))),
        holds(inner),
    )
    div = '<content type="xhtml"><x:div><x:p>Seeing <x:b>3</x:b></x:p></x:div></content>'
    bound = f' xmlns="{ATOM_NS}" xmlns:x="http://www.w3.org/1999/xhtml"'
    yield _case("XHTML with a prefix", kind, atom(items=entry(3, content=div), namespace=bound), holds(div))
    summary = '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><details><summary>More</summary></details></div></content>'
    yield _case("XHTML with names of Atom's", kind, atom(items=entry(3, content=summary)), holds(summary))
    nested = "<description><![CDATA[<p>a <![CDATA[b]]> c</p>]]></description>"
    yield _case(
        "CDATA in CDATA", kind, rss(items=item(3, more=nested) + item(2)), titles("Night 3", "Night 2")
    )
    yield _case(
        "a blank id",
        kind,
        rss().replace("night-", " ").replace(">1<", "><").replace("> 1<", ">  <"),
        holds("Night 3", "Night 1"),
    )
    lone = "".join(f"<item><title>Night {night}</title><guid>/p/{night}</guid></item>" for night in (3, 2))
    yield _case("an id that is a path", kind, rss(items=lone), titles("Night 3", "Night 2"))
    moved = "<itunes:new-feed-url>http://podcast.example/feed</itunes:new-feed-url>"
    root = '<rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" '
    yield _case("a new address", kind, rss(head=moved).replace("<rss ", root), _without(b"podcast.example"))
    cloud = '<cloud domain="rpc.example" port="80" path="/r" registerProcedure="p" protocol="xml-rpc"/>'
    yield _case("a cloud", kind, rss(head=cloud), _without(b"rpc.example"))


def _without(text: bytes) -> Expected:
    judge_titles = titles(*ALL)
    return lambda reply: judge_titles(reply) or (f"with {text!r}" if text in reply.body else "")


def _json() -> Iterator[Case]:
    kind = "JSON"
    media = "application/feed+json"
    items = [
        {"id": f"night-{night}", "title": f"Night {night}", "content_html": f"<p>Seeing {night}</p>"}
        for night in (3, 2, 1)
    ]
    whole = {"version": "https://jsonfeed.org/version/1.1", "title": "A sky log", "items": items}
    text = json.dumps(whole, indent=1)
    for name, body in {
        "a mark": "\ufeff" + text,
        "raw line breaks": text.replace("<p>Seeing", "<p>Seeing\n"),
        "raw tabs": text.replace("<p>Seeing", "<p>\tSeeing"),
        "a comma behind the last item": text.replace("\n ]", ",\n ]"),
        "a comma behind the last member": text.replace('</p>"', '</p>",'),
        "null": text.replace('"title": "A', '"icon": null, "title": "A'),
    }.items():
        yield _case(name, kind, body, titles(*ALL), media)
    for name, version in {
        "a number": "1.1",
        "alone": '"1.1"',
        "of something else": '"https://example.org/1.1"',
    }.items():
        odd = text.replace('"https://jsonfeed.org/version/1.1"', version)
        yield _case(f"a version that is {name}", kind, odd, refused("not-a-feed"), media)
    yield _case("UTF-16 with a mark", kind, text.encode("utf-16"), titles(*ALL), media)
