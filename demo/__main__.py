"""`python -m demo`: the newcomer's first minute."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import urllib.error
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from demo.feeds import SampleFeed
from demo.proxy_process import ProxyFailedError, free_port, running_proxy
from demo.publisher import Publisher
from demo.reader import Answer, ask, ask_until_settled, proxied

_LATENCY_SECONDS: Final = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; return 0 if every feed is whole."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _demonstrate(options.port, once=options.once)
    except ProxyFailedError as exc:
        print(f"demo: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="demo", description="A sample publisher, the proxy, and a reader.")
    parser.add_argument("--once", action="store_true", help="end after the report instead of at Ctrl-C")
    parser.add_argument("--port", type=int, help="the proxy's port (8080 if free, else any)")
    return parser


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _demonstrate(port: int | None, *, once: bool) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-demo-") as name,
        Publisher(latency_seconds=_LATENCY_SECONDS) as publisher,
    ):
        folder = Path(name)
        archives = ", ".join(f"{feed.title} ({len(feed.documents)} documents)" for feed in publisher.feeds)
        print(f"A sample publisher on {publisher.url('/')}: {archives},")
        print(f"each of its responses {_LATENCY_SECONDS * 1000:.0f} ms late, as from a distant server.")
        with running_proxy(folder, free_port() if port is None else port) as base:
            print(f"The proxy on {base}, its log in {folder / 'proxy.log'}.")
            came_whole = [_show(base, publisher, feed) for feed in publisher.feeds]
            if not once:
                _wait_for_the_end(base, publisher)
        return 0 if all(came_whole) else 1


def _show(base: str, publisher: Publisher, feed: SampleFeed) -> bool:
    """Ask for one feed in all the ways of readers, and print the answers; return whether it is whole."""
    print(f"\n{feed.title}")
    url = proxied(base, publisher.url(feed.path))
    try:
        alone = ask(publisher.url(feed.path))
        _line("the publisher alone", f"{alone.entries} entries", alone)
        asked_before = publisher.request_count
        first, seconds = _first_time(url)
        asked = publisher.request_count - asked_before
        again = ask(url)
        _line("asked again", f"{again.entries} entries from the store", again)
        unchanged = ask(url, etag=again.etag)
        _line("with the last ETag", f"status {unchanged.status}, nothing to send", unchanged)
    except (urllib.error.URLError, OSError) as exc:
        print(f"  failed: {exc}")
        return False
    documents, state = first.reconstruction.get("documents", "?"), first.state or "no state"
    print(f"  = {first.entries} of {feed.entries} entries out of {documents} documents ({state}),")
    print(f"    after {seconds:.2f} s and {asked} requests to the publisher")
    return first.entries == again.entries == feed.entries and first.state == feed.state


def _first_time(url: str) -> tuple[Answer, float]:
    """Ask until the feed is there; return the last answer and the total seconds."""
    seconds = 0.0
    answer: Answer | None = None
    for answer in ask_until_settled(url):
        seconds += answer.seconds
        _line("through the proxy", f"{answer.entries} entries, {answer.state or 'no state'}", answer)
    assert answer is not None
    return answer, seconds


def _line(what: str, result: str, answer: Answer) -> None:
    size = f"{answer.wire_bytes / 1024:.1f} KiB" if answer.wire_bytes else "0 bytes"
    print(f"  {what:<20} {result:<32} {size:>10} {answer.seconds * 1000:>8.1f} ms", flush=True)


def _wait_for_the_end(base: str, publisher: Publisher) -> None:
    print(f"\nLook at it: open {base}/ in a browser.")
    print("Try it: point your reader, or curl, at")
    for feed in publisher.feeds:
        print(f"  {proxied(base, publisher.url(feed.path))}")
    print("Or give the proxy any other feed:")
    print(f"  {base}/feed?url=https://…")
    print("Ctrl-C ends it all and cleans up.", flush=True)
    signal.pause()


if __name__ == "__main__":
    sys.exit(main())
