"""`wholefeed opml`: subscription lists rewritten to the proxy and back, on the command line."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.bringing import an_opml
from tests.feeds import atom, publish_chain
from tests.origin import Origin
from tests.processes import serving
from tests.running import a_config, running
from wholefeed.cli.access_token import ensure_token
from wholefeed.cli.main import main
from wholefeed.cli.output import describe_intake
from wholefeed.config.tables import load_config
from wholefeed.core.intake import advise
from wholefeed.core.opml import read_opml

SAMPLE = Path(__file__).parents[1] / "data" / "opml" / "freshrss.opml"
BASE = "http://127.0.0.1:8080"


def urls(document: bytes) -> list[str]:
    return [each.url for each in read_opml(document).subscriptions]


def test_a_list_moves_in_and_back_in_the_same_file(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """-o may name FILE itself; --undo gives the same bytes."""
    file = own_folder / "mine.opml"
    file.write_bytes(SAMPLE.read_bytes())
    assert main(["opml", "mine.opml", "-o", "mine.opml", "--for", "CommaFeed"]) == 0
    assert "changed 2 of 2 subscriptions to go through the proxy" in capsys.readouterr().err
    first, second = urls(file.read_bytes())
    assert first == f"{BASE}/feed?url=https%3A%2F%2Fexample.de%2Ffeed%2F&answer_bytes=5000000"
    assert parse_qs(urlsplit(second).query)["url"] == ["https://example.com/list?page=1&sort=new#top"]
    assert main(["opml", "--undo", "mine.opml", "-o", "mine.opml"]) == 0
    assert file.read_bytes() == SAMPLE.read_bytes()
    assert "changed 2 of 2 subscriptions back to their publishers' URLs" in capsys.readouterr().err
    assert [path.name for path in own_folder.iterdir()] == ["mine.opml"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            ["--replay", "2/day", "--on", "mon,thu", "--from", "2026-11-02T06:00:00+01:00", "--no-original"],
            {
                "replay": ["2/day"],
                "from": ["2026-11-02T06:00:00+01:00"],
                "on": ["mon,thu"],
                "original": ["off"],
            },
        ),
        (["--no-listed", "--for", "CommaFeed"], {"listed": ["off"], "answer_bytes": ["5000000"]}),
        (["--as", "atom", "--text", "full"], {"as": ["atom"], "text": ["full"]}),
    ],
)
def test_what_is_chosen_for_a_list_is_in_each_url_and_goes_again(
    own_folder: Path, flags: list[str], expected: dict[str, list[str]]
) -> None:
    """P8, H1: each URL has all options; --undo removes them."""
    file = own_folder / "mine.opml"
    file.write_bytes(SAMPLE.read_bytes())
    assert main(["opml", "mine.opml", "-o", "mine.opml", *flags]) == 0
    for url in urls(file.read_bytes()):
        found = parse_qs(urlsplit(url).query)
        assert found.pop("url")
        assert found == expected
    assert main(["opml", "--undo", "mine.opml", "-o", "mine.opml"]) == 0
    assert file.read_bytes() == SAMPLE.read_bytes()


def test_standard_input_and_output(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` reads standard input; without -o, or with `-o -`, standard output has the list alone."""
    for arguments in (["-"], ["-", "-o", "-"]):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(SAMPLE.read_bytes())))
        assert main(["opml", "--base", "http://nas:8080/w", *arguments]) == 0
        said = capfdbinary.readouterr()
        assert all(url.startswith("http://nas:8080/w/feed?url=") for url in urls(said.out))


def test_what_stays_is_named_with_its_line_and_why(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each unchanged subscription is named without its password; beyond twenty, only their number."""
    (own_folder / "a.opml").write_text(
        '<opml>\n<outline xmlUrl="https://ann:secret@example.org/"/>\n<outline xmlUrl="exec:x"/>\n'
        f'<outline xmlUrl="{BASE}/feed?url=http%3A%2F%2Fa.test%2F"/>'
        + '\n<outline xmlUrl="urn:x"/>' * 30
        + "</opml>"
    )
    assert main(["opml", "a.opml", "-o", "b.opml"]) == 0
    said = capsys.readouterr().err
    assert "changed 0 of 33 subscriptions to go through the proxy" in said
    assert "line 2, left as it is: https://example.org/: contains a user name" in said
    assert "line 3, left as it is: exec:x: not http or https" in said
    assert "12 more are left as they are" in said
    assert "left as they are: 1: goes through the proxy already" in said
    assert "secret" not in said
    assert (own_folder / "b.opml").read_bytes() == (own_folder / "a.opml").read_bytes()


def test_a_list_that_had_to_be_repaired_is_told(own_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A bare ampersand is repaired, and standard error says so."""
    (own_folder / "a.opml").write_text('<opml><outline text="R&D" xmlUrl="https://example.org/"/></opml>')
    assert main(["opml", "a.opml"]) == 0
    said = capfd.readouterr()
    assert "a.opml is not well-formed; repaired: ampersands" in said.err
    assert 'text="R&amp;D"' in said.out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "<opml>\n<outline>",
            "a.opml: expected well-formed XML, got an error: no element found (line 2, column 10)",
        ),
        ("<rss/>", "a.opml: expected OPML, got a document of <rss>"),
        (None, "cannot read a.opml: No such file or directory"),
    ],
)
def test_a_list_that_cannot_be_read_leaves_all_as_it_was(
    own_folder: Path, capsys: pytest.CaptureFixture[str], content: str | None, told: str
) -> None:
    """Exit 1, one line with the place, and an unchanged output file."""
    if content is not None:
        (own_folder / "a.opml").write_text(content)
    (own_folder / "b.opml").write_text("before")
    assert main(["opml", "a.opml", "-o", "b.opml"]) == 1
    assert capsys.readouterr().err.startswith(f"wholefeed: {told}")
    assert (own_folder / "b.opml").read_text() == "before"


def test_other_addresses_of_the_proxy_can_be_named(own_folder: Path) -> None:
    """The first --base is written; URLs at the others come back with --undo."""
    old = "http://old.example/feed?url=https%3A%2F%2Fa.test%2F"
    (own_folder / "a.opml").write_text(
        f'<opml><outline xmlUrl="{old}"/><outline xmlUrl="http://b.test/"/></opml>'
    )
    bases = ["--base", "https://new.example", "--base", "http://old.example"]
    assert main(["opml", "a.opml", "-o", "b.opml", *bases]) == 0
    moved = (own_folder / "b.opml").read_bytes()
    assert urls(moved) == [old, "https://new.example/feed?url=http%3A%2F%2Fb.test%2F"]
    assert main(["opml", "--undo", "b.opml", "-o", "c.opml", *bases]) == 0
    assert urls((own_folder / "c.opml").read_bytes()) == ["https://a.test/", "http://b.test/"]


def test_the_token_of_the_first_start_goes_into_each_url(
    own_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a token the URLs would be dead: exit 2; --undo needs none."""
    monkeypatch.setenv("WHOLEFEED_SERVER_HOST", "0.0.0.0")
    arguments = ["opml", str(SAMPLE), "--base", "http://nas:8080", "-o", "b.opml"]
    assert main(arguments) == 2
    assert "run `wholefeed serve` once" in capsys.readouterr().err
    assert main([*arguments, "--undo"]) == 0
    token = ensure_token(load_config(None, os.environ, {})).token
    assert main(arguments) == 0
    assert all(f"&token={token}" in url for url in urls((own_folder / "b.opml").read_bytes()))


async def test_the_known_feeds_are_exported(
    own_folder: Path,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """--export asks the running proxy, else the database; --undo gives the publishers' URLs."""
    origin.publish("/feed", atom())
    config = a_config(own_folder)
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    async with running(config) as proxy:
        await proxy.whole(origin.url("/feed"))
        monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(proxy.client.port))
        assert await asyncio.to_thread(main, ["opml", "--export", "--base", "http://nas"]) == 0
    asked = capfdbinary.readouterr().out
    assert await asyncio.to_thread(main, ["opml", "--export", "--base", "http://nas"]) == 0
    read = capfdbinary.readouterr().out
    assert read == asked
    assert b'title="A feed"' in read
    (url,) = urls(read)
    assert url.startswith("http://nas/feed?url=")
    assert await asyncio.to_thread(main, ["opml", "--export", "--undo"]) == 0
    assert urls(capfdbinary.readouterr().out) == [origin.url("/feed")]


@pytest.mark.usefixtures("no_server")
def test_an_export_of_nothing_is_a_list(capfd: pytest.CaptureFixture[str]) -> None:
    """No database is made, and the list is empty."""
    assert main(["opml", "--export"]) == 0
    assert "no feed is known yet" in capfd.readouterr().err
    assert not Path("wholefeed.db").exists()


async def test_a_list_is_brought_in_by_the_running_proxy(
    own_folder: Path,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """B1, B4: --ask prints totals, gains and failures, exit code 3 if one failed; -o has the changed list."""
    publish_chain(origin, archives=2)
    document = an_opml(origin.url("/feed"), origin.url("/gone"), "urn:x", titles=("A",))
    (own_folder / "a.opml").write_bytes(document)
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    async with serving(own_folder) as served:
        monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(served.port))
        arguments = ["opml", "--ask", "a.opml", "-o", "b.opml"]
        assert await asyncio.to_thread(main, arguments) == 3
        said = capfd.readouterr()
        assert said.out.splitlines() == [
            "2 feeds: 2 entries before, 6 now; 1 complete, 1 failed",
            "",
            "the largest gains:",
            "  A feed: 2 entries before, 6 now",
            "",
            f"failed: {advise('publisher-status', 404)}",
            f"  line 3: {origin.url('/gone')}: the publisher responded with status 404",
            "",
            "1 not asked for:",
            "  line 4: urn:x: not http or https",
        ]
        assert "changed 2 of 3 subscriptions" in said.err
        assert await asyncio.to_thread(main, ["opml", "--ask", "--json", "a.opml"]) == 3
        told = json.loads(capfd.readouterr().out)
        assert (told["fresh"], told["over"], told["states"]) == (1, True, {"complete": 1})
    assert len(urls((own_folder / "b.opml").read_bytes())) == 3


@pytest.mark.usefixtures("no_server")
async def test_a_list_is_brought_in_without_a_proxy(
    own_folder: Path,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """B3: the command asks the publishers; a proxy that starts later has the feeds."""
    publish_chain(origin, archives=2)
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    (own_folder / "a.opml").write_bytes(an_opml(origin.url("/feed")))
    assert await asyncio.to_thread(main, ["opml", "--ask", "a.opml"]) == 0
    said = capfd.readouterr()
    assert "1 feed: 2 entries before, 6 now; 1 complete" in said.out
    assert "no proxy runs, so this command asks for the feeds" in said.err
    assert await asyncio.to_thread(main, ["list"]) == 0
    assert origin.url("/feed") in capfd.readouterr().out


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--ask", "--undo", "a.opml"], "expected --ask, or --undo"),
        (["--ask", "--export"], "expected --ask, or --export"),
        (["--json", "a.opml"], "expected --ask beside --json"),
        (["--ask", "a.opml", "-o", "-"], "expected the name of a file for -o beside --ask"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    own_folder: Path, capsys: pytest.CaptureFixture[str], flags: list[str], told: str
) -> None:
    """Exit code 2, and nothing is asked."""
    (own_folder / "a.opml").write_bytes(an_opml("http://a.test/"))
    assert main(["opml", *flags]) == 2
    assert told in capsys.readouterr().err


def test_progress_is_a_bar() -> None:
    """One line on a terminal."""
    told = {"asked": 5, "feeds": 10, "progress": "5 of 10 feeds asked, 5 to go, 1 failed", "now": 1234}
    assert describe_intake(told) == (
        "[############............] 5 of 10 feeds asked, 5 to go, 1 failed; 1,234 entries"
    )


@pytest.mark.skipif(shutil.which("newsboat") is None, reason="no newsboat")
def test_newsboat_s_subscriptions_move_in_and_back(own_folder: Path) -> None:
    """newsboat itself exports and imports the list, and finds it unchanged at the end."""

    def newsboat(urls: str, *arguments: str) -> str:
        command = ["newsboat", "-u", urls, "-c", f"{urls}.db", "-C", "/dev/null", *arguments]
        done = subprocess.run(
            command,
            env=os.environ | {"HOME": str(own_folder)},
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return done.stdout

    feeds = ["https://example.org/feed.xml", "https://example.net/?feed=rss2&cat=3"]
    (own_folder / "urls").write_text("\n".join(feeds) + "\n")
    (own_folder / "exported.opml").write_text(newsboat("urls", "-e"))
    assert main(["opml", "exported.opml", "-o", "moved.opml"]) == 0
    newsboat("moved", "-i", "moved.opml")
    moved = [line.split()[0] for line in (own_folder / "moved").read_text().splitlines()]
    assert moved == [f"{BASE}/feed?url={quote(feed, safe='')}" for feed in feeds]
    (own_folder / "again.opml").write_text(newsboat("moved", "-e"))
    assert main(["opml", "--undo", "again.opml", "-o", "back.opml"]) == 0
    assert (own_folder / "back.opml").read_text() == (own_folder / "exported.opml").read_text()
