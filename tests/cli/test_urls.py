"""`wholefeed url` and `wholefeed sign`: the printed URLs, and the messages on failure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from wholefeed.cli.access_token import ensure_token
from wholefeed.cli.main import main
from wholefeed.config.tables import Config, ServerConfig, StoreConfig
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.server.clients import AccessVerdict, verify

FEED = "https://example.org/feed?a=1&b=2"
KEYS = ("the-key-that-signs", "the-key-before-it")


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration with signing keys."""
    monkeypatch.setenv("WHOLEFEED_SERVER_SIGNING_KEYS", ",".join(KEYS))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out.removesuffix("\n")


def query_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(printed(capsys, *arguments)).query)


def test_url_prints_one_line_that_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    """Any spelling of the feed's URL works; standard output has the URL alone."""
    assert main(["url", " feed://EXAMPLE.org/feed?a=1&b=2 ", "--base", "http://nas:8080"]) == 0
    said = capsys.readouterr()
    encoded = "https%3A%2F%2Fexample.org%2Ffeed%3Fa%3D1%26b%3D2"
    assert (said.out, said.err) == (f"http://nas:8080/feed?url={encoded}\n", "")


@pytest.mark.usefixtures("no_server")
def test_a_url_of_a_proxy_that_does_not_run_comes_with_where_it_was_looked_for(
    capsys: pytest.CaptureFixture[str], own_folder: Path
) -> None:
    """Without --base, and with nobody at the configured address: one line of standard error."""
    assert main(["url", FEED]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("http://127.0.0.1:9/feed?url=")
    assert said.err == (
        "wholefeed: no proxy answers there now: looked on 127.0.0.1, port 9 (server.host, server.port),"
        f" and for {own_folder / 'wholefeed.db'} (store.path)\n"
    )


def test_the_token_of_the_first_start_stands_in_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`serve` writes the token to a file; before, the message gives advice."""
    monkeypatch.setenv("WHOLEFEED_SERVER_HOST", "0.0.0.0")
    assert main(["url", FEED, "--base", "http://nas:8080"]) == 2
    assert "run `wholefeed serve` once" in capsys.readouterr().err
    store = StoreConfig(path="wholefeed.db")
    made = ensure_token(Config(server=ServerConfig(host="0.0.0.0"), store=store))
    found = query_of(capsys, "url", FEED, "--base", "http://nas:8080")
    assert found == {"url": [FEED], "token": [made.token]}


@pytest.mark.parametrize(
    "proxied",
    [
        "http://127.0.0.1:8080/feed?url=https%3A%2F%2Fexample.org%2Ffeed%3Fa%3D1%26b%3D2&token=old&limit=3",
        "localhost:8080/https://example.org/feed?a=1&b=2",
    ],
)
def test_a_url_of_the_proxy_s_own_is_made_anew(capsys: pytest.CaptureFixture[str], proxied: str) -> None:
    """A URL pasted from a reader does not lead through the proxy twice."""
    assert query_of(capsys, "url", proxied) == {"url": [FEED]}


def test_views_and_readers_add_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    """`--for` adds the reader's parameters and advice; flags outrank it."""
    assert main(["url", FEED, "--for", "miniflux"]) == 0
    said = capsys.readouterr()
    assert parse_qs(urlsplit(said.out.strip()).query) == {"url": [FEED], "answer_bytes": ["15000000"]}
    assert "FETCHER_ALLOW_PRIVATE_NETWORKS" in said.err
    found = query_of(capsys, "url", FEED, "--for", "Miniflux", "--answer-bytes", "9000", "--limit", "5")
    assert found == {"url": [FEED], "limit": ["5"], "answer_bytes": ["9000"]}
    assert query_of(capsys, "url", FEED, "--pages", "50") == {"url": [FEED], "pages": ["50"]}
    assert query_of(capsys, "url", FEED, "--for", "AntennaPod") == {"url": [FEED], "pages": ["200"]}
    found = query_of(capsys, "url", FEED, "--no-listed", "--limit", "5")
    assert found == {"url": [FEED], "listed": ["off"], "limit": ["5"]}
    (since,) = query_of(capsys, "url", FEED, "--for", "rss2email")["since"]
    assert abs((parse_rfc3339(since) or 0) - time.time()) < 60


@pytest.mark.usefixtures("signing")
def test_the_url_that_is_signed_is_good_for_the_canonical_feed(capsys: pytest.CaptureFixture[str]) -> None:
    """Row 80: `--days 2` is valid for two days to the second."""
    parts = urlsplit(printed(capsys, "sign", "HTTPS://Example.org:443/feed?a=1&b=2#top"))
    query = parse_qs(parts.query)
    assert (parts.scheme, parts.netloc, parts.path) == ("http", "127.0.0.1:8080", "/feed")
    assert query["url"] == [FEED]
    assert verify(FEED, query["signed"][0], KEYS[:1], time.time() + 10**9) is AccessVerdict.VALID
    before = time.time()
    (mark,) = query_of(capsys, "sign", FEED, "--days", "2")["signed"]
    assert verify(FEED, mark, KEYS, before + 2 * 86_400 - 1) is AccessVerdict.VALID
    assert verify(FEED, mark, KEYS, time.time() + 2 * 86_400) is AccessVerdict.EXPIRED


@pytest.mark.usefixtures("signing")
def test_the_base_is_the_flag_s_else_the_public_url_else_where_it_listens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed URL begins with --base, else server.public_url, else the address of the server."""
    monkeypatch.setenv("WHOLEFEED_SERVER_HOST", "::1")
    assert printed(capsys, "sign", FEED).startswith("http://[::1]:8080/feed?url=")
    monkeypatch.setenv("WHOLEFEED_SERVER_PUBLIC_URL", "https://feeds.example/w/")
    assert printed(capsys, "sign", FEED).startswith("https://feeds.example/w/feed?url=")
    assert printed(capsys, "sign", FEED, "--base", "http://b.example/").startswith("http://b.example/feed?")


@pytest.mark.usefixtures("signing")
@pytest.mark.parametrize(
    ("variable", "value", "feed", "told"),
    [
        ("SIGNING_KEYS", "", FEED, "expected a key in server.signing_keys, got none"),
        ("SIGNING_KEYS", "guessable", FEED, "16 characters or more"),
        ("HOST", "0.0.0.0", FEED, "expected --base URL, or server.public_url to be set"),
        ("PORT", "0", FEED, "expected --base URL, or server.public_url to be set"),
        ("PORT", "1", "ftp://example.org/", "expected an http(s) URL"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: str,
    feed: str,
    told: str,
) -> None:
    """`sign` without a key, a base or a feed URL is exit 2; no key is printed."""
    monkeypatch.setenv(f"WHOLEFEED_SERVER_{variable}", value)
    assert main(["sign", feed]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert not any(key in error for key in (*KEYS, "guessable"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["url", FEED, "--limit", "0"], "expected limit as a whole number, 1 or more, got '0'"),
        (["url", FEED, "--answer-bytes", "5"], "expected answer_bytes as a whole number, 1024 or more"),
        (["url", FEED, "--pages", "5"], "expected pages as a whole number, 10 to 1000, got '5'"),
        (["url", FEED, "--pages", "10", "--limit", "5"], "expected pages, or limit, got both"),
        (["url", FEED, "--for", "Miniflux", "--pages", "10"], "expected pages, or answer_bytes, got both"),
        (["url", FEED, "--since", "yesterday"], "expected since as an RFC 3339 instant such as"),
        (["url", FEED, "--for", "Nobody"], "expected one of AntennaPod, CommaFeed, Feedbin"),
        (["url", FEED, "--base", "nas"], "such as http://192.168.1.5:8080, got 'nas'"),
        (["url", ""], "expected the URL of a feed"),
        (["url", "ftp://a.test/"], "http(s)"),
        (["sign", FEED, "--days", "0"], "expected whole days from 1 to 36500, got '0'"),
        (["sign", FEED, "--days", "1.5"], "expected whole days"),
        (["sign", FEED, "--base", "feeds.example"], "expected an http or https URL without a query"),
        (["sign", FEED, "--base", ""], "expected an http or https URL without a query"),
    ],
)
def test_what_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """Otherwise a dead URL would be printed."""
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main(arguments))
    assert end.value.code == 2
    assert told in capsys.readouterr().err


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set a clock with summer time."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("now", "arguments", "expected"),
    [
        ("2026-07-01T09:00:00Z", (), "2026-07-01T06:00:00+02:00"),
        ("2026-07-01T03:59:59Z", (), "2026-06-30T06:00:00+02:00"),
        ("2026-10-26T06:00:00Z", ("--on", "sat"), "2026-10-24T06:00:00+02:00"),
        ("2026-10-26T06:00:00Z", ("--on", "sat,mon"), "2026-10-26T06:00:00+01:00"),
        ("2026-07-01T09:00:00Z", ("--from", "2026-07-02T06:00:00Z"), "2026-07-02T06:00:00Z"),
    ],
)
@pytest.mark.usefixtures("in_berlin")
def test_a_replay_begins_at_the_last_six_of_the_local_clock(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    now: str,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    """P8: on a listed day, with the offset of that day; unless given."""
    now_at = datetime.fromisoformat(now).timestamp()
    monkeypatch.setattr(time, "time", lambda: now_at)
    found = query_of(capsys, "url", FEED, "--replay", "1/day", *arguments)
    assert found == {
        "url": [FEED],
        "replay": ["1/day"],
        "from": [expected],
        **({"on": [arguments[1]]} if "--on" in arguments else {}),
    }


def test_a_replay_says_all_that_was_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """The options of a reader stand beside it, except `since`, which contradicts the beginning."""
    chosen = ("--replay", "3/week", "--from", "2026-11-02T07:30:00+01:00", "--no-original")
    found = query_of(capsys, "url", FEED, *chosen, "--for", "CommaFeed")
    assert found == {
        "url": [FEED],
        "replay": ["3/week"],
        "from": ["2026-11-02T07:30:00+01:00"],
        "original": ["off"],
        "answer_bytes": ["5000000"],
    }
    assert main(["url", FEED, *chosen, "--for", "rss2email"]) == 0
    said = capsys.readouterr()
    assert "since" not in said.out + said.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--on", "mon"), "expected --replay beside --from, --on and --no-original"),
        (("--no-original",), "expected --replay beside"),
        (("--replay", "3/week", "--on", "mon"), "beside replay=3/day"),
        (("--replay", "0/day"), "replay as N/day or N/week, N from 1 to 50, got '0/day'"),
        (("--replay", "1/day", "--from", "today"), "from as an RFC 3339 instant with its offset"),
        (("--replay", "1/day", "--on", "monday"), "on as days such as mon,wed,fri"),
        (("--replay", "1/day", "--no-listed"), "expected replay, or listed=off, got both"),
    ],
)
@pytest.mark.parametrize("command", ["url", "opml"])
def test_a_replay_that_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str],
    own_folder: Path,
    command: str,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    """A mistake of usage names the expected value, and prints no result."""
    (own_folder / "a.opml").write_text("<opml/>")
    try:
        code = main([command, FEED if command == "url" else "a.opml", *arguments])
    except SystemExit as end:
        code = int(str(end.code))
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert expected in said.err
