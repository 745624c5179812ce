"""`wholefeed url`: the URL it prints, and what it says when it cannot."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from wholefeed.cli.access_token import ensure_token
from wholefeed.cli.main import main
from wholefeed.config.tables import Config, ServerConfig, StoreConfig
from wholefeed.core.text.dates import parse_rfc3339

FEED = "https://example.org/feed?a=1&b=2"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration of the developer's counts."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def query_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    assert main(["url", *arguments]) == 0
    return parse_qs(urlsplit(capsys.readouterr().out.removesuffix("\n")).query)


def test_it_prints_one_line_that_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    """The feed's URL may be written as people write it; nothing but the URL stands on standard output."""
    assert main(["url", " feed://EXAMPLE.org/feed?a=1&b=2 "]) == 0
    said = capsys.readouterr()
    encoded = "https%3A%2F%2Fexample.org%2Ffeed%3Fa%3D1%26b%3D2"
    assert said.out == f"http://127.0.0.1:8080/feed?url={encoded}\n"
    assert said.err == ""


def test_the_token_of_the_first_start_stands_in_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, empty_folder: Path
) -> None:
    """A token that `serve` made is taken from its file; before there is one, the message says what to do."""
    monkeypatch.setenv("WHOLEFEED_SERVER_HOST", "0.0.0.0")
    assert main(["url", FEED, "--base", "http://nas:8080"]) == 2
    assert "run `wholefeed serve` once" in capsys.readouterr().err
    made = ensure_token(
        Config(
            server=ServerConfig(host="0.0.0.0"), store=StoreConfig(path=str(empty_folder / "wholefeed.db"))
        )
    )
    found = query_of(capsys, FEED, "--base", "http://nas:8080")
    assert found == {"url": [FEED], "token": [made.token]}


@pytest.mark.parametrize(
    "proxied",
    [
        "http://127.0.0.1:8080/feed?url=https%3A%2F%2Fexample.org%2Ffeed%3Fa%3D1%26b%3D2&token=old&limit=3",
        "localhost:8080/https://example.org/feed?a=1&b=2",
    ],
)
def test_a_url_of_the_proxy_s_own_is_made_anew(capsys: pytest.CaptureFixture[str], proxied: str) -> None:
    """Pasted from a reader it leads to the feed behind it, not through the proxy twice."""
    assert query_of(capsys, proxied) == {"url": [FEED]}


def test_views_and_readers_add_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    """`--for` adds what that reader wants and says what its user should know; flags count over it."""
    assert main(["url", FEED, "--for", "miniflux"]) == 0
    said = capsys.readouterr()
    assert parse_qs(urlsplit(said.out.strip()).query) == {"url": [FEED], "answer_bytes": ["15000000"]}
    assert "FETCHER_ALLOW_PRIVATE_NETWORKS" in said.err
    found = query_of(capsys, FEED, "--for", "Miniflux", "--answer-bytes", "9000", "--limit", "5")
    assert found == {"url": [FEED], "limit": ["5"], "answer_bytes": ["9000"]}
    (since,) = query_of(capsys, FEED, "--for", "rss2email")["since"]
    assert abs((parse_rfc3339(since) or 0) - time.time()) < 60


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--limit", "0"], "expected limit as a whole number, 1 or more, got '0'"),
        (["--answer-bytes", "5"], "expected answer_bytes as a whole number, 1024 or more, got '5'"),
        (["--since", "yesterday"], "expected since as an RFC 3339 instant such as"),
        (["--for", "Nobody"], "expected one of CommaFeed, Feedbin"),
        (["--base", "nas"], "such as http://192.168.1.5:8080, got 'nas'"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """A bad value is exit 2 and says what is allowed, so that no dead URL is handed out."""
    with pytest.raises(SystemExit) as end:
        main(["url", FEED, *arguments])
    assert end.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("feed", "told"), [("", "expected the URL of a feed"), ("ftp://a.test/", "http(s)")])
def test_what_is_no_feed_s_url_is_refused(capsys: pytest.CaptureFixture[str], feed: str, told: str) -> None:
    """What the proxy would not take is not printed."""
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main(["url", feed]))
    assert end.value.code == 2
    assert told in capsys.readouterr().err
