"""wholefeed.cli.doctor: what does not fit together, each beside what does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wholefeed.cli.doctor import Finding, Machine, Verdict, judge_settings
from wholefeed.config.tables import Config

TOKEN = {"access_token": "t" * 16}
PUBLIC = {"host": "0.0.0.0"}
NAMED = {"public_url": "https://feeds.example.org"}
SOCKET = {"socket": "/run/wholefeed/wholefeed.sock"}
EVERYBODY = ("0.0.0.0/0",)
GIB = 1 << 30


def judged(machine: Machine | None = None, **sections: dict[str, Any]) -> list[Finding]:
    config = Config()
    for name, changes in sections.items():
        config = replace(config, **{name: replace(getattr(config, name), **changes)})
    machine = machine or Machine(memory_bytes=GIB, open_files=-1, is_container=False)
    return judge_settings(config, machine)


def test_the_defaults_fit_together() -> None:
    """Whoever sets nothing is not warned of anything."""
    assert [each.verdict for each in judged()] == [Verdict.GOOD]


SERVER_FITS: list[dict[str, Any]] = [
    {**PUBLIC},
    {**PUBLIC, **TOKEN},
    {**NAMED, **TOKEN, "trusted_proxies": ("127.0.0.1/32",), "client_requests_per_minute": 60},
    {"allowed_hosts": ("feeds.example.org",), "trusted_proxies": ("10.0.0.1/32",)},
    {"signing_keys": ("k" * 16,), **TOKEN},
    {"public_url": "http://nas:8080", **TOKEN},
    {"public_url": "http://127.0.0.1:8080", **TOKEN},
    {**NAMED, **TOKEN, "trusted_proxies": ("127.0.0.1/32",), "metrics_networks": ("127.0.0.0/8",)},
    {"metrics_networks": ("127.0.0.0/8",)},
    {**NAMED, **TOKEN, **SOCKET, "trusted_proxies": ("unix:",), "client_requests_per_minute": 60},
    {**NAMED, **TOKEN, **SOCKET, "trusted_proxies": ("127.0.0.1/32",)},
]


@pytest.mark.parametrize("server", SERVER_FITS)
def test_what_fits_is_not_complained_of(server: dict[str, Any]) -> None:
    """Usual ways to run it."""
    assert {each.verdict for each in judged(server=server)} == {Verdict.GOOD}


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"server": {**PUBLIC, "open": True}}, "server.open lets anybody"),
        ({"server": NAMED}, "server.public_url is set and neither token"),
        ({"server": {"signing_keys": ("k" * 16,)}}, "without server.access_token"),
        ({"server": {"public_url": "http://feeds.example.org", **TOKEN}}, "is http"),
        ({"server": {"trusted_proxies": ("10.0.0.1/32",)}}, "421"),
        ({"server": {**NAMED, **TOKEN, "client_requests_per_minute": 60}}, "as one"),
        (
            {
                "server": {
                    **NAMED,
                    **TOKEN,
                    **SOCKET,
                    "trusted_proxies": ("127.0.0.1/32",),
                    "client_requests_per_minute": 60,
                }
            },
            "by server.socket as one",
        ),
        ({"server": SOCKET}, "server.socket is set and neither token"),
        ({"server": {**NAMED, **TOKEN, "trusted_proxies": ("unix:",)}}, "no server.socket is set"),
        ({"server": {**NAMED, **TOKEN, "metrics_networks": ("127.0.0.0/8",)}}, "/metrics to all"),
        ({"server": {"metrics_networks": EVERYBODY}}, "/metrics to everybody"),
        ({"fetch": {"allow_networks": EVERYBODY}}, "guard of private addresses off"),
        ({"fetch": {"allow_hosts": ("a.example",), "deny_hosts": ("a.example",)}}, "a.example is in"),
        ({"limits": {"respond_within_seconds": 30}}, "some readers wait 10 s"),
        ({"fetch": {"connect_timeout_seconds": 90}}, "never counts"),
        ({"store": {"memory_bytes": 3 * GIB // 4}}, "over half|more than half"),
        ({"limits": {"feed_bytes": 1 << 20}}, "limits.document_bytes is larger"),
        ({"limits": {"workers": 0}}, "limits.workers is 0"),
        ({"fetch": {"concurrency": 2}}, "fetch.concurrency_per_host is larger"),
        ({"history": {"poll_seconds": 60}}, "history.poll_seconds is shorter"),
        ({"history": {"poll_seconds": 3600, "remember": False}}, "without history.remember"),
        ({"history": {"memento": True}, "fetch": {"allow_hosts": ("a.example",)}}, "history.memento asks"),
    ],
)
def test_what_does_not_fit_is_a_warning(sections: dict[str, Any], words: str) -> None:
    """One each, with what to type; nothing else is complained of."""
    (found,) = [each for each in judged(**sections) if each.verdict is not Verdict.GOOD]
    assert found.verdict is Verdict.WARNING
    assert any(part in found.text for part in words.split("|")), found.text
    assert found.advice


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"server": {"trusted_proxies": EVERYBODY, **NAMED, **TOKEN}}, "believes everybody"),
        ({"server": {"trusted_proxies": ("::/0",), **NAMED, **TOKEN}}, "believes everybody"),
        ({"store": {"memory_bytes": 2 * GIB}}, "more than the"),
        (
            {"server": {**PUBLIC, "open": True}, "fetch": {"allow_networks": ("10.0.0.0/8",)}},
            "private networks",
        ),
    ],
)
def test_what_cannot_be_meant_is_wrong(sections: dict[str, Any], words: str) -> None:
    """It does harm, or nothing of what it says."""
    (found,) = [each for each in judged(**sections) if each.verdict is Verdict.WRONG]
    assert words in found.text
    assert found.advice


def test_a_token_that_will_be_made_is_told() -> None:
    """A public address without a token is no open proxy."""
    (found,) = judged(server=PUBLIC)
    assert found.verdict is Verdict.GOOD
    assert "wholefeed.db.token" in found.text


def test_a_wildcard_lets_the_archive_through() -> None:
    """fetch.allow_hosts is read as the guard reads it."""
    assert [
        each.verdict for each in judged(history={"memento": True}, fetch={"allow_hosts": ("*.archive.org",)})
    ] == [Verdict.GOOD]


def test_docker_kills_before_a_long_grace_is_over() -> None:
    """In a container alone."""
    server = {"shutdown_grace_seconds": 30}
    container = Machine(memory_bytes=0, open_files=-1, is_container=True)
    assert [each.verdict for each in judged(container, server=server)] == [Verdict.WARNING]
    assert [each.verdict for each in judged(server=server)] == [Verdict.GOOD]
