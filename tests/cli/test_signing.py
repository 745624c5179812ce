"""`wholefeed sign`: the URL it prints, and what it needs for that."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from wholefeed.cli.main import main
from wholefeed.server.clients import Verdict, verify

FEED = "http://example.org/feed?a=1&b=2"
KEYS = ("the-key-that-signs", "the-key-before-it")


@pytest.fixture(autouse=True)
def signing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHOLEFEED_SERVER_SIGNING_KEYS", ",".join(KEYS))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["sign", *arguments]) == 0
    return capsys.readouterr().out.removesuffix("\n")


def test_the_url_that_is_printed_is_good_for_the_canonical_feed(capsys: pytest.CaptureFixture[str]) -> None:
    """Row 80: `sign` signs the canonical spelling, so that the printed URL opens that feed."""
    parts = urlsplit(printed(capsys, "HTTP://Example.org:80/feed?a=1&b=2#top"))
    query = parse_qs(parts.query)
    assert (parts.scheme, parts.netloc, parts.path) == ("http", "127.0.0.1:8080", "/feed")
    assert query["url"] == [FEED]
    assert verify(FEED, query["signed"][0], KEYS[:1], time.time() + 10**9) is Verdict.VALID


def test_days_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Row 80: `--days 2` gives a URL that is valid for two days to the second, and expired from then on."""
    before = time.time()
    (mark,) = parse_qs(urlsplit(printed(capsys, FEED, "--days", "2")).query)["signed"]
    assert verify(FEED, mark, KEYS, before + 2 * 86_400 - 1) is Verdict.VALID
    assert verify(FEED, mark, KEYS, time.time() + 2 * 86_400) is Verdict.EXPIRED


def test_the_base_is_the_flag_s_else_the_public_url_else_where_it_listens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed URL begins with --base, else server.public_url, else the address of the server."""
    monkeypatch.setenv("WHOLEFEED_SERVER_HOST", "::1")
    assert printed(capsys, FEED).startswith("http://[::1]:8080/feed?url=")
    monkeypatch.setenv("WHOLEFEED_SERVER_PUBLIC_URL", "https://feeds.example/w/")
    assert printed(capsys, FEED).startswith("https://feeds.example/w/feed?url=")
    assert printed(capsys, FEED, "--base", "http://b.example/").startswith("http://b.example/feed?url=")


@pytest.mark.parametrize(
    ("variable", "value", "arguments", "told"),
    [
        ("SIGNING_KEYS", "", [FEED], "expected a key in server.signing_keys, got none"),
        ("SIGNING_KEYS", "guessable", [FEED], "16 characters or more"),
        ("HOST", "0.0.0.0", [FEED], "expected --base URL, or server.public_url to be set"),
        ("PORT", "0", [FEED], "expected --base URL, or server.public_url to be set"),
        ("PORT", "1", ["ftp://example.org/"], "expected an http(s) URL"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: str,
    arguments: list[str],
    told: str,
) -> None:
    """`sign` without a key, a base or a feed URL is exit 2 and names which; no key is ever printed."""
    monkeypatch.setenv(f"WHOLEFEED_SERVER_{variable}", value)
    assert main(["sign", *arguments]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert not any(key in error for key in (*KEYS, "guessable"))


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("--days", "0", "expected whole days from 1 to 36500, got '0'"),
        ("--days", "1.5", "expected whole days"),
        ("--base", "feeds.example", "expected an http or https URL without a query"),
        ("--base", "", "expected an http or https URL without a query"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], flag: str, value: str, told: str
) -> None:
    """Bad values of --days and --base are exit 2 and say what is allowed, so that no dead URL is handed
    out."""
    with pytest.raises(SystemExit) as end:
        main(["sign", FEED, flag, value])
    assert end.value.code == 2
    assert told in capsys.readouterr().err
