"""The commands that make URLs through the proxy: `wholefeed url`, `sign` and `opml`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wholefeed.cli.address import EVERYWHERE, answers, http_url, url_here, where_looked
from wholefeed.cli.base import (
    EXIT_DONE,
    EXIT_UNFINISHED,
    Command,
    json_text,
    load_for_result,
    show,
    some,
    tell,
)
from wholefeed.core.readers import READERS, ReaderLimits, reader_named
from wholefeed.core.text.dates import DAY_SECONDS

if TYPE_CHECKING:
    from wholefeed.config.tables import Config, ServerConfig
    from wholefeed.core.opml import OpmlDocument
    from wholefeed.web.list_rewriting import RewrittenList


# What they share


def _add_base(parser: argparse.ArgumentParser, action: str = "store") -> None:
    base_help = (
        "the URL that readers reach the proxy by (server.public_url, else server.host and server.port)"
    )
    if action == "append":
        base_help += "; once more for each other address that is the proxy's"
    parser.add_argument("--base", metavar="URL", type=_base, action=action, help=base_help)


def _base(text: str) -> str:
    from wholefeed.config.rules import web_url

    with suppress(ValueError):
        if base := str(web_url("").check(text)):
            return base
    raise argparse.ArgumentTypeError(
        f"expected an http or https URL without a query, such as http://192.168.1.5:8080, got {text!r}"
    )


_READERS: Final = ", ".join(reader.name for reader in READERS)


def _add_reader(parser: argparse.ArgumentParser) -> None:
    reader_help = f"add what that reader wants: {_READERS}"
    parser.add_argument("--for", dest="reader", metavar="READER", type=_reader, help=reader_help)


def _reader(text: str) -> ReaderLimits:
    if (found := reader_named(text)) is not None:
        return found
    raise argparse.ArgumentTypeError(f"expected one of {_READERS}, got {text!r}; others need no --for")


def _base_of(given: str | None, server: ServerConfig) -> str:
    """Return the readers' URL of the proxy, without a final slash.

    Raises:
        ConfigError: Unknown, since the proxy listens on all addresses or a free port.
    """
    from wholefeed.errors import ConfigError

    base = given or server.public_url.rstrip("/")
    if not base and (server.host in EVERYWHERE or not server.port):
        raise ConfigError(
            "expected --base URL, or server.public_url to be set, got neither: where do readers find it?"
            f" For example --base http://192.168.1.5:{server.port or 8080}"
        )
    return base or http_url(server.host, server.port)


def _tell_where_looked(given: str | None, config: Config) -> None:
    if not (given or config.server.public_url or answers(config)):
        tell(f"no proxy answers there now: {where_looked(config)}")


def _server_with_token(config: Config) -> ServerConfig:
    """Return the running proxy's [server] settings, with its token.

    Raises:
        ConfigError: Readers need a token, and none exists yet.
        StoreError: The token's file cannot be read.
    """
    from wholefeed.cli.access_token import known_token, needs_token
    from wholefeed.errors import ConfigError

    token = known_token(config)
    if not token and needs_token(config.server):
        raise ConfigError(
            f"others can reach {config.server.host}, so readers need an access token, and there"
            " is none beside"
            f" {config.store.path}: run `wholefeed serve` once, which makes one, or set server.access_token"
        )
    return replace(config.server, access_token=token)


def _add_replay(parser: argparse.ArgumentParser) -> None:
    replay = parser.add_argument_group("from its beginning, at a pace")
    rate_help = "the oldest entries first, N a day or a week, e.g. 1/day, 3/week; then new ones as they come"
    replay.add_argument("--replay", metavar="RATE", type=_pace("rate"), help=rate_help)
    from_help = (
        "the start of the replay, e.g. 2026-01-31T06:00:00+01:00 (default: the last 6:00 of this"
        " machine's clock, on a day of --on)"
    )
    replay.add_argument("--from", dest="begins", metavar="INSTANT", type=_pace("since"), help=from_help)
    on_help = "with N/day: on these days alone, e.g. mon,wed,fri"
    replay.add_argument("--on", metavar="DAYS", type=_pace("weekdays"), help=on_help)
    original_help = "leave the date of publication out of titles"
    replay.add_argument("--no-original", action="store_true", help=original_help)


def _add_text(parser: argparse.ArgumentParser) -> None:
    text_help = "full: give entries without a text, or with a cut one, the text of their own page"
    parser.add_argument("--text", metavar="full", choices=("full",), help=text_help)


def _add_format(parser: argparse.ArgumentParser) -> None:
    as_help = "atom: a JSON Feed comes as Atom, for readers that know XML only; other feeds come as they are"
    parser.add_argument("--as", metavar="atom", choices=("atom",), help=as_help)


def _add_listed(parser: argparse.ArgumentParser) -> None:
    listed_help = "without entries that only the publisher's pages list"
    parser.add_argument("--no-listed", dest="listed", action="store_const", const="off", help=listed_help)


def _pace(name: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        from wholefeed.core.replay import PaceError, ReplayPace

        try:
            ReplayPace.read(**{"rate": "1/day", "since": "2026-01-31T06:00:00Z", name: text})
        except PaceError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc
        return text

    return read


def _parameters(options: argparse.Namespace) -> dict[str, str]:
    """Return the query parameters for the reader, the replay and the view.

    Raises:
        ConfigError: Conflicting flags.
    """
    from wholefeed.core.replay import PaceError, ReplayPace
    from wholefeed.errors import ConfigError, RequestError
    from wholefeed.web.request import VIEW_OPTIONS, begun_replay, read_view

    now = time.time()
    wanted = {} if options.reader is None else options.reader.parameters(now)
    given = {
        "replay": options.replay,
        "from": options.begins,
        "on": options.on,
        "original": "off" if options.no_original else None,
    }
    replay = {name: value for name, value in given.items() if value is not None}
    if replay:
        if "replay" not in replay:
            raise ConfigError(
                "expected --replay beside --from, --on and --no-original, such as --replay 1/day"
            )
        replay = begun_replay(replay, now)
        # It brings little at once, what is out already is its beginning, and it has no pages.
        wanted = {name: value for name, value in wanted.items() if name not in ("since", "pages")} | replay
    chosen = {name: getattr(options, name, None) for name in VIEW_OPTIONS}
    wanted |= {name: value for name, value in chosen.items() if value is not None}
    try:  # each is right, but they may not go together
        if replay:
            ReplayPace.read(replay["replay"], replay["from"], replay.get("on"))
        read_view(wanted, 0)
    except (PaceError, RequestError) as exc:
        raise ConfigError(str(exc)) from exc
    return wanted


# `wholefeed url`


def _add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "feed",
        metavar="FEED",
        type=some("the URL of a feed or of a site"),
        help="the URL of a feed or a site",
    )
    _add_base(parser)
    _add_reader(parser)
    parser.add_argument("--limit", metavar="N", type=_option("limit"), help="only the first N entries")
    since_help = "only entries from this instant on, e.g. 2026-01-31T00:00:00Z"
    parser.add_argument("--since", metavar="TIME", type=_option("since"), help=since_help)
    parser.add_argument(
        "--answer-bytes",
        metavar="N",
        type=_option("answer_bytes"),
        help="at most N bytes, newest entries first",
    )
    pages_help = "in pages of N entries, for apps that follow `next` links or refuse long feeds"
    parser.add_argument("--pages", metavar="N", type=_option("pages"), help=pages_help)
    _add_text(parser)
    _add_format(parser)
    _add_listed(parser)
    _add_replay(parser)


def _option(name: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        from wholefeed.errors import RequestError
        from wholefeed.web.request import read_view

        try:
            read_view({name: text}, 0)
        except RequestError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc
        return text

    return read


def _url(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.core.text.urls import UrlPlaces
    from wholefeed.web.list_rewriting import feed_behind, proxied_url
    from wholefeed.web.request import complete_url, feed_url

    reader = options.reader
    wanted = _parameters(options)
    base = _base_of(options.base, config.server)
    own = UrlPlaces.of([base, config.server.public_url, url_here(config)])
    # Whoever asks for the URL of one that goes through the proxy wants it made anew, not put behind itself.
    behind = filter(None, (feed_behind(each, own) for each in complete_url(options.feed)))
    feed = feed_url(next(behind, options.feed))
    url = proxied_url(base, feed, _server_with_token(config), wanted)
    show(f"{url}\n")
    _tell_where_looked(options.base, config)
    if reader is not None and not (options.replay and reader.starts_now):
        tell(f"{reader.name}: {reader.hint}")
    return EXIT_DONE


URL: Final = Command(
    name="url",
    summary="print the URL to subscribe to, with the token or a signature where readers need one",
    examples="  wholefeed url example.org/feed.atom\n"
    "  wholefeed url --base http://192.168.1.5:8080 --for Miniflux https://example.org/feed.atom\n"
    "  wholefeed url --replay 1/day example.org/feed.atom\n"
    "  wholefeed url --replay 2/day --on mon,thu --from 2026-11-02T07:30:00+01:00 example.org/feed.atom",
    run=_url,
    add_arguments=_add_url,
)


# `wholefeed sign`

_LONGEST_DAYS: Final = 36_500


def _add_sign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", type=some("the URL of a feed"), help="the feed's URL")
    _add_base(parser)
    parser.add_argument(
        "--days", metavar="N", type=_days, help="days for which the URL is valid (default: for ever)"
    )


def _days(text: str) -> int:
    with suppress(ValueError):
        if 1 <= (value := int(text)) <= _LONGEST_DAYS:
            return value
    raise argparse.ArgumentTypeError(f"expected whole days from 1 to {_LONGEST_DAYS}, got {text!r}")


def _sign(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.errors import ConfigError
    from wholefeed.server.clients import sign
    from wholefeed.web.request import feed_url, own_url

    server = config.server
    if not server.signing_keys:
        raise ConfigError("expected a key in server.signing_keys, got none: nothing to sign with")
    base = _base_of(options.base, server)
    expires_at = None if options.days is None else int(time.time()) + options.days * DAY_SECONDS
    url = feed_url(options.url)
    show(own_url(base, url, sign(url, server.signing_keys, expires_at=expires_at)) + "\n")
    _tell_where_looked(options.base, config)
    return EXIT_DONE


SIGN: Final = Command(
    name="sign",
    summary="print a URL that gives access to one feed and no other (needs server.signing_keys)",
    examples="  wholefeed sign https://example.org/feed.atom\n"
    "  wholefeed sign --days 365 --base https://feeds.example.net https://example.org/feed.atom",
    run=_sign,
    add_arguments=_add_sign,
)


# `wholefeed opml`

_SHOWN: Final = 20


def _add_opml(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    file_help = "the list that a reader exported; - is standard input"
    source.add_argument("file", metavar="FILE", nargs="?", type=Path, help=file_help)
    source.add_argument("--export", action="store_true", help="export the feeds that the proxy knows")
    output_help = "the file to write; may be FILE itself (default: standard output)"
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=output_help)
    _add_base(parser, "append")
    _add_reader(parser)
    parser.add_argument("--undo", action="store_true", help="change the URLs back to the publishers' own")
    ask_help = "bring the list in: ask for each of its feeds once, and say what each gained"
    parser.add_argument("--ask", action="store_true", help=ask_help)
    parser.add_argument("--json", action="store_true", help="with --ask: print what GET /intake answers")
    _add_text(parser)
    _add_format(parser)
    _add_listed(parser)
    _add_replay(parser)


def _opml(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.output import opened_output
    from wholefeed.core.opml import read_opml
    from wholefeed.core.parse.limits import ParseError
    from wholefeed.errors import ConfigError, UploadError

    if options.ask and (options.undo or options.export):
        raise ConfigError(f"expected --ask, or {'--undo' if options.undo else '--export'}, got both")
    if options.json and not options.ask:
        raise ConfigError("expected --ask beside --json")
    if options.ask and str(options.output) == "-":
        raise ConfigError("expected the name of a file for -o beside --ask, got standard output")
    name = "standard input" if str(options.file) == "-" else options.file or "the proxy's list"
    config, sent = _export(config) if options.export else (config, _read(options.file))
    try:
        document = read_opml(sent)
    except ParseError as exc:
        raise UploadError(f"{name}: {exc.message}", slug=exc.slug) from exc
    if document.repairs:
        tell(f"{name} is not well-formed; repaired: {', '.join(document.repairs)}")
    if options.ask and options.output is None:
        return _bring_in(options, config, sent)
    moved = _rewrite(options, config, document)
    with opened_output(None if str(options.output) in ("None", "-") else options.output) as output:
        output.write(moved.document)
    if options.export:
        _tell_left(moved)
        if not document.subscriptions:
            tell(f"no feed is known yet: {where_looked(config)}")
    else:
        _tell(moved, is_undone=options.undo)
    if not options.undo:
        _tell_where_looked(options.base, config)
    return _bring_in(options, config, sent) if options.ask else EXIT_DONE


def _bring_in(options: argparse.Namespace, config: Config, document: bytes) -> int:
    """Print each feed's gain; exit code 3 if some failed."""
    from wholefeed.cli.backend import ask
    from wholefeed.cli.output import describe_intake, watch_progress

    parameters = _parameters(options)
    with watch_progress(describe_intake) as progress:
        told = ask(config, lambda feeds: feeds.bring_in(document, parameters), progress)
    show(json_text(told) if options.json else "".join(f"{line}\n" for line in _format_intake(told)))
    return EXIT_UNFINISHED if told["failed"] else EXIT_DONE


def _format_intake(told: Mapping[str, Any]) -> Iterator[str]:
    from wholefeed.core.intake import describe_gain
    from wholefeed.core.words import printable

    yield told["summary"]
    if told["fresh"]:
        yield f"{told['fresh']:,} of them were here and fresh already"
    if told["largest"]:
        yield "\nthe largest gains:"
    for each in told["largest"]:
        yield f"  {describe_gain(printable(each['title']), each['before'], each['now'])}"
    advice = ""
    for each in sorted(told["failures"], key=lambda failed: failed["advice"]):
        if each["advice"] != advice:
            advice = each["advice"]
            yield f"\nfailed: {advice}"
        yield f"  line {each['line']}: {printable(each['url'])}: {each['text']}"
    if told["left_out"]:
        yield f"\n{told['left_out']:,} not asked for:"
    for each in told["unchanged"][:_SHOWN]:
        yield f"  line {each['line']}: {each['url'] or 'nothing'}: {each['text']}"


def _export(config: Config) -> tuple[Config, bytes]:
    from wholefeed.cli.backend import ask
    from wholefeed.core.opml import read_opml
    from wholefeed.core.text.urls import UrlPlaces
    from wholefeed.web.list_rewriting import moved_out

    # The command may lack the proxy's configuration, but the list shows the public URL.
    here, listed = url_here(config), read_opml(ask(config, lambda feeds: feeds.export()))
    base = next((each.url.partition("/feed?")[0] for each in listed.subscriptions), here)
    if base != here:
        config = replace(config, server=replace(config.server, public_url=base))
    return config, moved_out(listed, UrlPlaces.of([base])).document


def _read(path: Path) -> bytes:
    from wholefeed.core.opml import MAX_BYTES
    from wholefeed.errors import WholefeedError

    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise WholefeedError(f"cannot read {path}: {exc.strerror}") from exc


def _rewrite(options: argparse.Namespace, config: Config, document: OpmlDocument) -> RewrittenList:
    from wholefeed.core.text.urls import UrlPlaces
    from wholefeed.fetch.guard import AddressPolicy
    from wholefeed.web.list_rewriting import moved_out, rewrite_list

    own = UrlPlaces.of([*(options.base or ()), config.server.public_url, url_here(config)])
    parameters = _parameters(options)
    if options.undo:
        return moved_out(document, own)
    return rewrite_list(
        document,
        own,
        base=_base_of(options.base and options.base[0], config.server),
        server=_server_with_token(config),
        policy=None if options.export else AddressPolicy.from_config(config.fetch),
        options=parameters,
    )


def _tell(moved: RewrittenList, *, is_undone: bool) -> None:
    from wholefeed.web.list_rewriting import Left

    number, all_of_them = moved.rewritten, moved.rewritten + len(moved.left)
    way = "back to their publishers' URLs" if is_undone else "to go through the proxy"
    tell(f"changed {number} of {all_of_them} subscriptions {way}")
    _tell_left(moved)
    for why in (Left.ALREADY, Left.DIRECT):
        if count := sum(each.why is why for each in moved.left):
            tell(f"left as they are: {count}: {why.words}")


def _tell_left(moved: RewrittenList) -> None:
    from wholefeed.web.list_rewriting import Left

    left = [each for each in moved.left if each.why not in (Left.ALREADY, Left.DIRECT)]
    for each in left[:_SHOWN]:
        tell(f"line {each.line}, left as it is: {each.url or 'nothing'}: {each.why.words}")
    if len(left) > _SHOWN:
        tell(f"{len(left) - _SHOWN} more are left as they are")


OPML: Final = Command(
    name="opml",
    summary="change a subscription list (OPML) to the proxy's URLs, or back; bring it in; or export the known"
    " feeds",
    examples="  wholefeed opml subscriptions.opml -o moved.opml\n"
    "  wholefeed opml --ask subscriptions.opml -o moved.opml\n"
    "  wholefeed opml --undo moved.opml -o subscriptions.opml\n"
    "  wholefeed opml --replay 3/week subscriptions.opml -o moved.opml\n"
    "  wholefeed opml --export -o wholefeed.opml\n"
    "  newsboat -e | wholefeed opml --base http://192.168.1.5:8080 - > moved.opml",
    run=_opml,
    add_arguments=_add_opml,
)
