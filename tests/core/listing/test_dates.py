"""wholefeed.core.listing.page_dates: days, months and years as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.listing.page_dates import Day, Slashed, day_in, read_date, read_heading, read_slashed


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2011-03-04", Day(2011, 3, 4)),
        ("4.3.2011", Day(2011, 3, 4)),
        ("Posted on March 4th, 2011 by me", Day(2011, 3, 4)),
        ("Fri, 4 Mar 2011", Day(2011, 3, 4)),
        ("4. März 2011", Day(2011, 3, 4)),
        ("le 4 août 2011", Day(2011, 8, 4)),
        ("4 de septiembre de 2011", Day(2011, 9, 4)),
        ("4 сентября 2011", Day(2011, 9, 4)),
        ("2011年3月4日", Day(2011, 3, 4)),
        ("04-Mar-2011", Day(2011, 3, 4)),
        ("Mar 4", Day(None, 3, 4)),
        ("4 March:", Day(None, 3, 4)),
        ("03-04", Day(None, 3, 4)),
        ("29 Feb", Day(None, 2, 29)),
        ("Sat Mar  5 08:48:12 2011".replace("  ", " "), Day(2011, 3, 5)),
        ("Sat Mar 05 08:48 CET 2011", Day(2011, 3, 5)),
        ("30 Feb 2011", None),
        ("29 Feb 2011", None),
        ("2011-13-04", None),
        ("1066-10-14", None),
        ("4 Marble 2011", None),
        ("4 things", None),
        ("March", None),
        ("192.168.2011.3.4", None),
        ("On the 4th of March 2011 we walked from here to there and back again at night", None),
    ],
)
def test_a_day_is_read(text: str, day: Day | None) -> None:
    """H5: a date in the text near a link, in the forms and languages that blogs have; nothing is guessed."""
    assert read_date(text) == day


def test_a_title_with_a_date_in_it_is_no_date() -> None:
    """H5: in the text of a link a date stands alone, but for its weekday."""
    assert read_date("Friday, 4 March 2011", is_alone=True) == Day(2011, 3, 4)
    assert read_date("Notes of 4 March 2011", is_alone=True) is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2011", Day(2011, None, None)),
        ("2011 (12)", Day(2011, None, None)),
        ("— 2011 —", Day(2011, None, None)),
        ("March 2011", Day(2011, 3, None)),
        ("2011-03", Day(2011, 3, None)),
        ("März 2011 [7 Beiträge]", Day(2011, 3, None)),
        ("2011年3月", Day(2011, 3, None)),
        ("March", Day(None, 3, None)),
        ("In 2011", None),
        ("1011", None),
        ("Marx", None),
        ("20111", None),
    ],
)
def test_a_heading_is_read(text: str, day: Day | None) -> None:
    """H5: a year, a month of one, or a month, and nothing else in it but how many entries there are."""
    assert read_heading(text) == day


def test_days_in_numbers_are_read_as_their_page_has_them() -> None:
    """H5: 03/04/2011 is of two days; which it is shows where one of its numbers is no month."""
    assert read_slashed("03/04/2011") == Slashed(3, 4, 2011)
    assert read_slashed("03/04/2011").day(is_day_first=True) == Day(2011, 4, 3)  # type: ignore[union-attr]
    assert read_slashed("03/04/2011").day(is_day_first=False) == Day(2011, 3, 4)  # type: ignore[union-attr]
    assert Slashed(3, 4, 2011).day(is_day_first=None).at is None
    assert (Slashed(13, 4, 2011).is_day_first, Slashed(4, 13, 2011).is_day_first) == (True, False)
    assert Slashed(13, 4, 2011).day(is_day_first=False) == Day(2011, 4, 13)
    assert Slashed(13, 14, 2011).day(is_day_first=None).at is None


@pytest.mark.parametrize(
    ("url", "day"),
    [
        ("https://a.example/2009/03/14/pi", Day(2009, 3, 14)),
        ("https://a.example/blog/2009-03-14-pi.html", Day(2009, 3, 14)),
        ("https://a.example/2009/3/pi", Day(2009, 3, None)),
        ("https://a.example/2009/pi", Day(2009, None, None)),
        ("https://a.example/2009/mar/14/pi", Day(2009, 3, 14)),
        ("https://a.example/2009/March/pi", Day(2009, 3, None)),
        ("https://a.example/2009/marble/pi", Day(2009, None, None)),
        ("https://a.example/2009/12-things/", Day(2009, None, None)),
        ("https://a.example/2009/03/14-things/", Day(2009, 3, None)),
        ("https://a.example/notes/2009/", None),
        ("https://a.example/2009/02/30/pi", None),
        ("https://a.example/20091/pi", None),
        ("https://a.example/p/1234/", None),
    ],
)
def test_a_day_in_a_url_is_read(url: str, day: Day | None) -> None:
    """H5: `/2009/03/14/`, a month or year alone."""
    assert day_in(url) == day


@given(st.text(max_size=100) | st.from_regex(r"[0-9]{1,5}[-/. ][0-9]{1,3}[-/. ][0-9]{1,5}", fullmatch=True))
def test_whatever_is_written_is_a_day_or_none(text: str) -> None:
    """H9: no date out of range, and none that does not exist."""
    for day in (read_date(text), read_heading(text), day_in(f"/{text}/x")):
        if day is not None and day.year is not None:
            assert day.at is not None
            assert 1980 <= day.year < 2200
