"""wholefeed.service.context: hosts that adapters leave in peace (R32)."""

from __future__ import annotations

import pytest

from wholefeed.service.context import MAX_HOSTS, HostPauses


def test_a_pause_holds_for_every_url_of_its_host() -> None:
    """R32: a pause counts for all feeds of the host, and for no other host."""
    pauses = HostPauses()
    pauses.pause("https://blog.example.org/feed/", 5_000.0, now=1_000.0)
    assert pauses.lasts("http://blog.example.org:8080/category/a/feed/", now=4_999.0)
    assert not pauses.lasts("http://blog.example.org:8080/category/a/feed/", now=5_000.0)
    assert not pauses.lasts("https://example.org/feed/", now=1_000.0)


@pytest.mark.fault("115")
def test_a_pause_that_a_wrong_clock_has_noted_does_not_hold() -> None:
    """docs/faults.md row 115."""
    pauses = HostPauses()
    pauses.pause("https://blog.example.org/feed/", 5_000.0, now=1_000.0)
    assert not pauses.lasts("https://blog.example.org/feed/", now=900.0)


def test_no_more_hosts_are_remembered_than_there_is_room_for() -> None:
    """R32: a publisher of a million names fills no memory."""
    pauses = HostPauses()
    for number in range(MAX_HOSTS + 10):
        pauses.pause(f"https://n{number}.example.org/", 60.0, now=0.0)
    assert not pauses.lasts("https://n9.example.org/", now=0.0)
    assert pauses.lasts(f"https://n{MAX_HOSTS + 9}.example.org/", now=0.0)
