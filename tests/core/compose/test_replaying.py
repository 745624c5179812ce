"""Entries as replays publish them, from their texts (P3)."""

from __future__ import annotations

import pytest

from wholefeed.core.compose.replaying import replay_entries, replay_head
from wholefeed.core.model import ATOM_03, Family


def test_members_that_stand_many_times_do_not_multiply_a_title() -> None:
    """P3: only the last member of a name counts: 111 KB once became 100 MB."""
    text = b'{"id":"a",' + b'"title":"",' * 100 + b'"title":"%s"' % (b"x" * 10_000)
    text += b',"date_published":"2009-03-14T10:00:00Z"}'
    (made,) = replay_entries([text], [1], Family.JSON)
    assert len(made) < 2 * len(text)


XHTML = "http://www.w3.org/1999/xhtml"


def head(title: str, version: str = "1.0") -> str:
    text = f"{title}<id>urn:feed</id>".encode()
    made = replay_head(Family.ATOM, version, text, identifier="urn:replay", is_dated=True).decode()
    assert "<id>urn:replay</id>" in made
    return made[: made.index("<id>")]


def test_a_replay_is_named_within_the_div_of_an_xhtml_title() -> None:
    """P4; RFC 4287, section 3.1.1.3: the div is the title's only child."""
    div = f'<div xmlns="{XHTML}">A <b>site</b>'
    assert (
        head(f'<title type="xhtml">{div}</div></title>')
        == f'<title type="xhtml">{div} (replay)</div></title>'
    )


@pytest.mark.fault("147")
def test_comments_before_a_div_are_read_once() -> None:
    """P4: each once doubled the time, with and without a div after them."""
    comments = "<!-- - -->" * 1000
    for opening, closing in ((f'<div xmlns="{XHTML}">', "</div>"), (f'<p xmlns="{XHTML}">', "</p>")):
        made = head(f'<title type="xhtml">{comments}{opening}A site{closing}</title>')
        assert made.startswith(f'<title type="xhtml">{comments}{opening}A site')


def test_what_another_attribute_says_makes_no_xhtml_and_no_base64() -> None:
    """P4: only the attribute for the type of a title counts."""
    for attribute in (f'xmlns:x="{XHTML}"', 'xml:lang="x-base64"'):
        assert head(f"<title {attribute}>A site</title>") == f"<title {attribute}>A site (replay)</title>"


def test_a_title_in_base64_stays_as_it_is() -> None:
    """P4; Atom 0.3, section 3.1.2: no text can follow it."""
    title = '<title mode="base64">QSBzaXRl</title>'
    assert head(title, ATOM_03) == title
