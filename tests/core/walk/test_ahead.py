from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.refresh.makers import O, archive
from wholefeed.core.walk.ahead import count_left, guesses_behind, next_urls


@pytest.mark.parametrize(
    ("steps", "guesses"),
    [
        (["/archive/41", "/archive/40"], ["/archive/39", "/archive/38"]),
        (["/?page=7", "/?page=8"], ["/?page=9", "/?page=10"]),
        (["/2003/12", "/2003/11"], ["/2003/10", "/2003/09"]),
        (["/2003/02/index.atom", "/2003/01/index.atom"], ["/2002/12/index.atom", "/2002/11/index.atom"]),
        (["/2003/01", "/2002/12"], ["/2002/11", "/2002/10"]),
        (["/2003-3", "/2003-2"], ["/2003-1", "/2002-12"]),
        (["/200302.xml", "/200301.xml"], ["/200212.xml", "/200211.xml"]),
        (["/2004/03/02", "/2004/03/01"], ["/2004/02/29", "/2004/02/28"]),
        (["/20040302", "/20040301"], ["/20040229", "/20040228"]),
        (["/2003/11/2", "/2003/11/1"], ["/2003/10/31", "/2003/10/30"]),
        (["/2004", "/2003"], ["/2002", "/2001"]),
        (["/a011b", "/a010b"], ["/a009b", "/a008b"]),
        (["/a100", "/a099"], ["/a098", "/a097"]),
        (["/11", "/10"], ["/9", "/8"]),
        (["/v2/41?k=3", "/v2/40?k=3"], ["/v2/39?k=3", "/v2/38?k=3"]),
        (["/2/1", "/2/0"], []),
        (["/2", "/1"], ["/0"]),
        (["/1970/02", "/1970/01"], []),
        (["/a?offset=10", "/a?offset=20"], []),
        (["/a?offset=10", "/a?offset=20", "/a?offset=30"], ["/a?offset=40", "/a?offset=50"]),
        (["/a?offset=10", "/a?offset=15", "/a?offset=30"], []),
        (["/a/10", "/b/20", "/b/30"], []),
        (["/99-99", "/98-98"], []),
        (["/41", "/41"], []),
        (["/41", "/041"], []),
        (["/41#a", "/40#b"], ["/39", "/38"]),
        (["/2003/13", "/2003/12"], ["/2003/11", "/2003/10"]),
        (["/a41", "/b40"], []),
        (["/41", "/40/1"], []),
        (["/feed", "/40"], []),
        (["/1234567890123456", "/1234567890123455"], []),
        (["/999999999999998", "/999999999999999"], []),
        (["/40"], []),
        ([], []),
    ],
)
def test_continues_numbers_and_dates(steps: list[str], guesses: list[str]) -> None:
    """docs/design.md#look-ahead: URLs that differ in one number or one date."""
    assert next_urls([O + step for step in steps], 2) == tuple(O + guess for guess in guesses)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("http://o41.test/a", "http://o40.test/a"),
        ("http://o.test:81/a", "http://o.test:80/a"),
        ("https://o.test/41", "http://o.test/40"),
        ("http://192.0.2.2/a", "http://192.0.2.1/a"),
    ],
)
def test_never_guesses_hosts(first: str, second: str) -> None:
    """A number in host, port or scheme is never counted down: guesses go only to linked servers."""
    assert next_urls([first, second], 2) == ()


def test_stops_at_the_greatest_length_of_a_url() -> None:
    """Row 20: guesses stay within the length of fetched URLs."""
    long = f"{O}/{'a' * 2033}"
    assert next_urls([f"{long}8", f"{long}9"], 5) == ()
    assert next_urls([f"{long}7", f"{long}8"], 5) == (f"{long}9",)


@given(st.lists(st.text(st.sampled_from("/-.?=019ax"), max_size=14), max_size=4), st.integers(0, 5))
def test_whatever_the_urls_guesses_are_few_new_and_of_the_same_host(paths: list[str], count: int) -> None:
    """For any two links there are at most as many as requested."""
    steps = [f"{O}/{path}" for path in paths]
    guesses = next_urls(steps, count)
    assert len(guesses) <= count
    assert len({*guesses, *steps[-1:]}) == len(guesses) + len(steps[-1:])
    assert all(guess.startswith(f"{O}/") for guess in guesses)


@given(st.integers(0, 90_000), st.integers(1, 3), st.booleans())
def test_a_counted_chain_is_guessed_right(start: int, step: int, is_padded: bool) -> None:
    """Six and eight digits may be a date: 200301 is followed by 200212."""
    urls = [f"{O}/a/{start + step * n:0{7 if is_padded else 1}d}" for n in range(5, -1, -1)]
    assert next_urls(urls[:3], 3) == tuple(urls[3:])


@pytest.mark.parametrize(
    ("steps", "last_url", "left"),
    [
        (["/a/41", "/a/40"], "", 39),
        (["/a/041", "/a/040"], "", 39),
        (["/a/2", "/a/1"], "", 0),
        (["/a?page=30", "/a?page=20"], "", None),
        (["/a?page=40", "/a?page=30", "/a?page=20"], "", 1),
        (["/a?page=2", "/a?page=3"], "/a?page=9", 6),
        (["/a?page=2", "/a?page=3"], "/a?page=2", 0),
        (["/a?page=2", "/a?page=3"], "/b?page=9", None),
        (["/a?page=2", "/a?page=3"], "", None),
        (["/2003/11", "/2003/10"], "", None),
        (["/200311", "/200310"], "", None),
        (["/a/41"], "", None),
        (["/a/x", "/a/y"], "", None),
    ],
)
def test_what_is_left_shows_in_numbers_alone(steps: list[str], last_url: str, left: int | None) -> None:
    """Falling numbers end at 1, rising ones at a known last page; else nobody knows."""
    urls = [f"http://o.test{each}" for each in steps]
    assert count_left(urls, f"http://o.test{last_url}" if last_url else "") == left


@pytest.mark.parametrize(
    ("attached", "guesses"),
    [
        ([40, 39, 38], [40]),
        ([40], [40]),
        ([39, 38], [40, 39]),
        ([39], []),
        ([38, 37], [40, 39, 38]),
        ([37, 36], []),  # more than three
        ([42, 41], []),  # already behind the stored chain
        ([20, 10], []),
        ([31, 21, 11], [31]),
        ([41, 40, 39], [40]),  # stored, and of another format than the feed's (R23)
    ],
)
def test_where_the_newest_is_missing_what_is_stored_tells_how_they_count(
    attached: Sequence[int], guesses: Sequence[int]
) -> None:
    """R34: up to the newest of the stored chain, which goes on behind it."""
    found = guesses_behind([archive(41)], [archive(number) for number in attached])
    assert list(found) == [archive(number) for number in guesses]
