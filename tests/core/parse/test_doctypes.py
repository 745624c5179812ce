"""Document types with an internal subset: cuts, refusals, and their costs."""

from __future__ import annotations

import pytest

from tests.core.parse.makers import URL, rss, slices
from wholefeed.core.notes import DocumentRepaired
from wholefeed.core.parse.doctypes import without_subset
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError

ITEM = "<item><guid>1</guid></item>"
LATIN = (
    '<!ENTITY % HTMLlat1 PUBLIC\n "-//W3C//ENTITIES Latin 1 for XHTML//EN"\n'
    ' "http://www.w3.org/TR/xhtml1/DTD/xhtml-lat1.ent">'
)
SPECIAL = "<!ENTITY % s SYSTEM 'http://www.w3.org/TR/xhtml1/DTD/xhtml-special.ent'>"
BEGINNINGS = [
    "<!DOCTYPE rss [",
    "<!doctype rss\n[",
    """<!DOCTYPE rss PUBLIC "-//N//DTD [>'//EN" 'http://127.0.0.1:1/"x.dtd' [""",
]


def under(subset: str, inside: str = ITEM, beginning: str = BEGINNINGS[0]) -> bytes:
    return rss(inside, prolog=f'<?xml version="1.0"?>\n<!-- [ -->\n{beginning}{subset}]>\n')


@pytest.mark.fault("150")
@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize(
    "subset",
    [
        "",
        " \n",
        "<!-- ]> <!ENTITY a 'b'> \" -->",
        "<?a ]> <!ENTITY a 'b'> ?>",
        '<!ELEMENT rss ANY><!ATTLIST item a CDATA "]>" b CDATA #IMPLIED><!NOTATION gif SYSTEM "a>b">',
        '<!ENTITY nbsp "&#160;"><!ENTITY  eacute\t\'&#xE9;\' ><!ENTITY mdash "—">',
        '<!ENTITY lt "&#38;#60;"><!ENTITY amp "&#38;#38;"><!ENTITY gt "&#62;">',
        '<!ENTITY lang "&#9001;"><!ENTITY rang "&#x27E9;">',
        LATIN,
        f"{LATIN}\n%HTMLlat1;\n",
        f"{SPECIAL}%s;{LATIN}%HTMLlat1;<!-- both -->",
    ],
)
def test_a_subset_that_changes_no_text_is_cut(subset: str, beginning: str) -> None:
    """docs/repair.md, `doctype`: HTML's entities are known anyway, and it adds no attribute."""
    document = parse(under(subset, "<item><guid>a&nbsp;b &eacute;&lt;</guid></item>", beginning), URL)
    assert document.notes == (DocumentRepaired(URL, repairs=("doctype", "entities")),)
    assert slices(document) == [b"<item><guid>a&#160;b &#233;&lt;</guid></item>"]
    assert b"DOCTYPE" not in document.text
    plain = parse(under(subset, beginning=beginning), URL)
    assert plain.notes == (DocumentRepaired(URL, repairs=("doctype",)),)
    assert slices(plain) == [ITEM.encode()]


@pytest.mark.fault("40", "41")
@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize(
    ("subset", "told"),
    [
        ('<!ENTITY nbsp "&#160;">\n<!ENTITY a "b">', "<!ENTITY a"),
        ('<!ENTITY a "b">', "<!ENTITY a"),
        ('<!ENTITY nbsp " ">', "<!ENTITY nbsp"),
        ('<!ENTITY nbsp "&a;">', "<!ENTITY nbsp"),
        ('<!ENTITY nbsp "&#160;&#160;">', "<!ENTITY nbsp"),
        ('<!ENTITY nbsp "&#99999999999;">', "<!ENTITY nbsp"),
        ('<!ENTITY nbsp "">', "<!ENTITY nbsp"),
        ('<!ENTITY nbsp SYSTEM "http://127.0.0.1:1/">', "<!ENTITY nbsp SYSTEM"),
        ('<!ENTITY a SYSTEM "file:///etc/passwd">', "<!ENTITY a SYSTEM"),
        ('<!ENTITY a SYSTEM "a" NDATA gif>', "<!ENTITY a SYSTEM"),
        ('<!ENTITY % p "x"> %p;', "<!ENTITY % p"),
        ("<!ENTITY % HTMLlat1 \"<!ENTITY a 'b'>\">%HTMLlat1;", "<!ENTITY % HTMLlat1"),
        ('<!ENTITY % HTMLlat1 SYSTEM "http://127.0.0.1:1/xhtml-lat1.ent">', "<!ENTITY % HTMLlat1"),
        ("%HTMLlat1;", "%HTMLlat1;"),
        (f"{LATIN}%HTMLsymbol;", "%HTMLsymbol;"),
        ("<![INCLUDE[<!ELEMENT a ANY>]]>", "<![INCLUDE["),
        ("<rss>", "<rss>"),
        ("<!-- ", "<!-- "),
        ("<?a ", "<?a "),
        ('<!ELEMENT a "', "<!ELEMENT a"),
    ],
)
def test_any_other_entity_is_refused_with_its_place(subset: str, told: str, beginning: str) -> None:
    """docs/faults.md rows 40 and 41: used or not, nothing is expanded, and the message names the
    declaration.
    """
    body = under(subset, "<item a='&a;'><guid>&a;</guid></item>", beginning)
    with pytest.raises(ParseError) as caught:
        parse(body, URL)
    assert caught.value.slug == "dtd-forbidden"
    assert caught.value.message.startswith(
        f"expected a DOCTYPE that declares no entities but HTML's, got {told.strip()}"
    )
    line = 3 + beginning.count("\n") + subset[: subset.rindex(told)].count("\n")
    assert f"(line {line})" in caught.value.message


@pytest.mark.fault("41")
@pytest.mark.parametrize(
    "prolog", ["<!DOCTYPE rss []><!DOCTYPE rss []>", "<b>Warning</b><!DOCTYPE rss []>", "<!DOCTYPE rss ["]
)
def test_a_second_one_or_one_elsewhere_is_refused(prolog: str) -> None:
    """docs/faults.md row 41: the search looks at the beginning alone, once."""
    with pytest.raises(ParseError) as caught:
        parse(rss(ITEM, prolog=prolog), URL)
    assert caught.value.slug == "dtd-forbidden"


def test_all_else_stays_as_it_is() -> None:
    """Comments and instructions before it, types without a subset, and text after the root."""
    before, behind = b"<?a b?>\n<!-- <!DOCTYPE x [ -->", b"<rss><!-- <!DOCTYPE x []> --></rss>"
    assert without_subset(before + b"<!DOCTYPE x []>" + behind) == before + behind
    for text in (behind, before + behind, b"<!DOCTYPE x SYSTEM 'a[b]>'>" + behind, b"", b"<!DOCTYPE"):
        assert without_subset(text) is text


@pytest.mark.fault("150")
@pytest.mark.parametrize("end", ["", "]>"])
@pytest.mark.parametrize(
    "unit",
    [
        *("<!---->", "<!--", "<!-- -", "<??>", "<?", "%a;", "%HTMLlat1;", " ", "]", "[", "<", '"', "'>"),
        *("<!ELEMENT a ANY>", '<!ELEMENT a "', "<!ELEMENT ", "<!ATTLIST a b '", '<!ENTITY nbsp "&#160;">'),
        *('<!ENTITY nbsp "&#38;#38;', "<!ENTITY % a PUBLIC ", "<!DOCTYPE rss [", "<!DOCTYPE rss []>", LATIN),
        *("<!ENTITY nbsp '&#160;'>]><!DOCTYPE rss [", "<!ENTITY % a SYSTEM '//www.w3.org/.ent"),
    ],
)
def test_the_cost_of_a_subset_grows_with_its_length(unit: str, end: str) -> None:
    """docs/repair.md: one pass to the first forbidden piece. A quadratic search takes hours."""
    body = under(LATIN + unit * (2_000_000 // len(unit)) + end)
    try:
        assert slices(parse(body, URL)) == [ITEM.encode()]
    except ParseError as error:
        assert error.slug in ("dtd-forbidden", "malformed-xml")  # noqa: PT017
