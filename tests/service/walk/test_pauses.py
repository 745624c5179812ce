"""Hosts that adapters leave in peace (R32)."""

from __future__ import annotations

from wholefeed.service.refresh import MAX_HOSTS, HostPauses


def test_a_pause_holds_for_every_url_of_its_host() -> None:
    """R32: what one feed was told counts for all feeds of the host, and for no other host."""
    pauses = HostPauses()
    pauses.pause("https://blog.example.org/feed/", 50.0)
    assert pauses.until("http://blog.example.org:8080/category/a/feed/") == 50.0
    assert pauses.until("https://example.org/feed/") is None


def test_no_more_hosts_are_remembered_than_there_is_room_for() -> None:
    """R32: a publisher of a million names takes no memory; the hosts that were paused last are known."""
    pauses = HostPauses()
    for number in range(MAX_HOSTS + 10):
        pauses.pause(f"https://n{number}.example.org/", float(number))
    assert pauses.until("https://n9.example.org/") is None
    assert pauses.until(f"https://n{MAX_HOSTS + 9}.example.org/") == MAX_HOSTS + 9
