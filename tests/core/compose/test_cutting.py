"""wholefeed.core.compose.cutting: which entries were cut short."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.feeds import Item, an_item, atom, atom_03, json_feed, rdf, rss
from wholefeed.core.compose.cutting import cut_short
from wholefeed.core.model import FeedDocument, entry_id
from wholefeed.core.parse.documents import parse

TEXT = "It was a bright cold day in April, and the clocks were striking thirteen."
URL = "http://o.test/feed"
MAKERS: dict[str, Callable[..., bytes]] = {
    "atom": atom,
    "atom 0.3": atom_03,
    "rss": rss,
    "rdf": rdf,
    "json": json_feed,
}


def cut(
    old: FeedDocument, new: FeedDocument, was_cut: str = "", remembered: FeedDocument | None = None
) -> str:
    found = cut_short(old, new, {entry_id(f"urn:{name}") for name in was_cut}, remembered)
    return "".join(name for name in "abcd" if entry_id(f"urn:{name}") in found)


def a_feed(*texts: str, form: str = "rss") -> FeedDocument:
    items: list[Item] = [an_item(name, 1, text) for name, text in zip("abcd", texts, strict=False)]
    return parse(MAKERS[form](*items), URL, "application/feed+json" if form == "json" else "")


@pytest.mark.parametrize("form", MAKERS)
def test_a_beginning_with_a_mark_is_cut(form: str) -> None:
    """R10: in each format."""
    assert cut(a_feed(TEXT, TEXT, form=form), a_feed(f"{TEXT[:30]}\u2026", TEXT, form=form)) == "a"


@pytest.mark.parametrize(
    "mark",
    [
        *("\u2026", " ...", " [\u2026]", " [...]", " (\u2026)", " &#8230;", " [&amp;hellip;]", " \u00bb"),
        *(" Read more", " Continue reading", " (more)", " \u2192"),
        *(
            '\u2026 &lt;a href="/1"&gt;Continue reading &lt;span&gt;The title&lt;/span&gt;&lt;/a&gt;',
            "&lt;p class='more'&gt;&lt;a&gt;Read the rest of this entry \u00bb&lt;/a&gt;&lt;/p&gt;",
        ),
    ],
)
def test_marks_of_cutting(mark: str) -> None:
    """R10: as generators write them, markup around them or not, and whatever white space they leave."""
    whole = f"&lt;p&gt;{TEXT[:30]}&lt;/p&gt;\n&lt;p&gt;{TEXT[30:]}&lt;/p&gt;"
    assert cut(a_feed(whole), a_feed(f"{TEXT[:20].strip()}{mark}")) == "a"


@pytest.mark.parametrize(
    "text",
    [TEXT[:30], f"No. {TEXT[:20]}\u2026", f"{TEXT}\u2026", f"{TEXT[:30]}\u2026 {'and so on, ' * 40}", ""],
)
def test_what_its_author_may_have_written_is_not_cut(text: str) -> None:
    """R10: no mark at the end, no beginning, not shorter."""
    assert cut(a_feed(TEXT), a_feed(text)) == ""


def test_less_than_half_of_the_entries_in_common_is_not_cut() -> None:
    """R10: those that are gone or new do not count, those that have lost their content do."""
    short = f"{TEXT[:30]}\u2026"
    assert cut(a_feed(TEXT, TEXT, TEXT), a_feed(short, TEXT, TEXT)) == ""
    assert cut(a_feed(TEXT, TEXT, TEXT), a_feed(short, short, TEXT)) == "ab"
    assert cut(a_feed(TEXT, TEXT, TEXT, TEXT), a_feed(short, TEXT)) == "a"


def test_what_was_cut_and_says_the_same_is_cut_still() -> None:
    """R10: and no more than that, where nothing was cut now."""
    short = f"{TEXT[:30]}\u2026"
    assert cut(a_feed(short, short, TEXT), a_feed(short, f"New. {short}", TEXT), "ab") == "a"
    assert cut(a_feed(short), a_feed(TEXT), "a") == ""


@pytest.mark.parametrize("form", MAKERS)
def test_what_was_cut_and_has_another_mark_is_cut_still(form: str) -> None:
    """R10: what is said before it has to be the same, wherever the full text is remembered."""
    old = a_feed(f"{TEXT[:30]}\u2026 Read more (3)", form=form)
    assert cut(old, a_feed(f"{TEXT[:30]}\u2026 Read more (4)", form=form), "a") == "a"
    assert cut(old, a_feed(f"{TEXT[:30]}...", form=form), "a") == "a"
    assert cut(old, a_feed(f"{TEXT[:29]}ings\u2026 Read more (4)", form=form), "a") == ""
    assert cut(old, a_feed(TEXT[:30], form=form), "a") == ""


@pytest.mark.parametrize("form", MAKERS)
def test_what_was_cut_and_is_longer_is_cut_while_it_is_a_beginning(form: str) -> None:
    """R10: of what is remembered of it; the whole text is none."""
    old, remembered = a_feed(f"{TEXT[:30]}\u2026", form=form), a_feed("Other.", TEXT, form=form)
    swapped = a_feed("Other.", f"{TEXT[:30]}\u2026", form=form)
    assert cut(swapped, a_feed("Other.", f"{TEXT[:50]}\u2026", form=form), "b", remembered) == "b"
    assert cut(swapped, a_feed("Other.", f"So {TEXT[:50]}\u2026", form=form), "b", remembered) == ""
    assert cut(swapped, a_feed("Other.", TEXT, form=form), "b", remembered) == ""
    assert cut(old, a_feed(f"{TEXT[:50]}\u2026", form=form), "a") == "", "nothing is remembered of it"
