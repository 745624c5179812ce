from __future__ import annotations

from xml.sax.saxutils import quoteattr

from hypothesis import given
from hypothesis import strategies as st

from tests.core.parse.makers import URL, atom, rss
from wholefeed.core.parse.documents import MAX_GAIN_BYTES, parse
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.verbatim.fragments import fragments_of, most_gained

VALUES = st.text(st.sampled_from('a"\t\n<&üĺ語𝄞:/'), max_size=40)
PREFIXES = st.sampled_from(["a", "dc", "ü", "media", "long-one"])
HEADS = st.sampled_from(
    [
        *("", "<author><name>n</name></author>", "<author><uri>/me</uri><name>ü</name></author>"),
        *('<author xml:base="/x/"><uri>me</uri></author>', "<rights>r</rights>", "<a:b/>", "<dc:d>x</dc:d>"),
        *('<link href="/"/>', "<copyright>c</copyright>", '<rights type="html">&lt;a href="/b"></rights>'),
    ]
)
CHILDREN = st.sampled_from(
    [
        *("", "<author><name>n</name></author>", '<link href="/1"/>', "<a:b/>", "<dc:d>media:x ü:y</dc:d>"),
        *('<content type="html">&lt;img src="/i"></content>', "<rights/>", "<enclosure url='e'/>"),
    ]
)


@given(
    st.booleans(),
    st.dictionaries(PREFIXES, VALUES.filter(bool)),
    VALUES,
    st.sampled_from(["", "/b/", "sub/", "http://other.test/very/long/base/"]),
    st.lists(HEADS, max_size=5),
    st.lists(CHILDREN, max_size=6),
)
def test_no_document_gains_more(
    is_atom: bool, prefixes: dict[str, str], lang: str, base: str, head: list[str], children: list[str]
) -> None:
    """Rule R22: what is taken for little without being made is no more when it is made."""
    attributes = "".join(f" xmlns:{prefix}={quoteattr(uri)}" for prefix, uri in prefixes.items())
    attributes += f" xml:lang={quoteattr(lang)}" + (f' xml:base="{base}"' if base else "")
    name = "entry" if is_atom else "item"
    written = [f"<{name}><id>urn:{number}</id>{child}</{name}>" for number, child in enumerate(children)]
    try:
        document = parse((atom if is_atom else rss)(*head, *written, attributes=attributes), URL)
    except ParseError:
        return
    fragments = fragments_of(document)
    gained = sum(
        len(fragments.entry(number)) - (entry.end - entry.start)
        for number, entry in enumerate(document.entries)
    )
    gained += sum(
        len(fragments.head_child(child)) - (child.end - child.start) for child in document.head.children
    )
    assert gained <= most_gained(document)


def test_most_documents_are_told_apart_without_being_made() -> None:
    """An author, a language and a few prefixes are little for hundreds of entries."""
    entries = [f"<entry><id>urn:{n}</id><updated>2026-01-01T00:00:00Z</updated></entry>" for n in range(300)]
    document = parse(atom("<author><name>n</name></author>", *entries), URL)
    assert most_gained(document) < MAX_GAIN_BYTES
