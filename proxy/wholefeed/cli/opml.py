"""`wholefeed opml`: a reader's subscription list led through the proxy, or back."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wholefeed.cli.base import add_base, add_reader, base_of, server_with_token, url_here
from wholefeed.cli.command import EXIT_DONE, Command, load_for_result
from wholefeed.cli.output import tell
from wholefeed.errors import UploadError, WholefeedError

if TYPE_CHECKING:
    from wholefeed.config.tables import Config
    from wholefeed.core.opml.document import OpmlDocument
    from wholefeed.web.moving import Moved

_SHOWN: Final = 20
"""Subscriptions that were left alone and are named one by one."""


def _add_opml(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    file_help = "the list that a reader exported; - is standard input"
    source.add_argument("file", metavar="FILE", nargs="?", type=Path, help=file_help)
    source.add_argument("--export", action="store_true", help="instead, the feeds that the proxy knows")
    output_help = "where the list goes; may be FILE itself (default: standard output)"
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=output_help)
    add_base(parser, is_repeatable=True)
    add_reader(parser)
    parser.add_argument("--undo", action="store_true", help="back to the publishers' own URLs")


def _opml(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.sink import opened_output
    from wholefeed.core.opml.document import read_opml
    from wholefeed.core.parse.errors import ParseError

    name = {None: "the proxy's list", "-": "standard input"}.get(
        options.file and str(options.file), options.file
    )
    try:
        document = read_opml(_exported(config) if options.export else _read(options.file))
    except ParseError as exc:
        raise UploadError(f"{name}: {exc.message}", slug=exc.slug) from exc
    if document.repairs:
        tell(f"{name} is not well-formed; put right: {', '.join(document.repairs)}")
    moved = _moved(options, config, document)
    with opened_output(None if str(options.output) in ("None", "-") else options.output) as output:
        output.write(moved.document)
    if not options.export:
        _tell(moved, is_undone=options.undo)
    elif not document.subscriptions:
        tell("no feed is known yet")
    return EXIT_DONE


def _exported(config: Config) -> bytes:
    """Return the known feeds, at their publishers."""
    from wholefeed.cli.backend import reach
    from wholefeed.core.opml.document import read_opml
    from wholefeed.web.moving import OwnAddresses, moved_out

    own = OwnAddresses([config.server.public_url, url_here(config)])
    return moved_out(read_opml(reach(config).exported()), own).document


def _read(path: Path) -> bytes:
    from wholefeed.core.opml.document import MAX_BYTES

    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise WholefeedError(f"cannot read {path}: {exc.strerror}") from exc


def _moved(options: argparse.Namespace, config: Config, document: OpmlDocument) -> Moved:
    from wholefeed.fetch.guard.addresses import AddressPolicy
    from wholefeed.web.moving import OwnAddresses, Way, moved_in, moved_out

    own = OwnAddresses([*(options.base or ()), config.server.public_url, url_here(config)])
    if options.undo:
        return moved_out(document, own)
    way = Way(
        base_of(options, config.server),
        server_with_token(config),
        AddressPolicy.from_config(config.fetch),
        options.reader.parameters(time.time()) if options.reader is not None else {},
    )
    return moved_in(document, way, own)


def _tell(moved: Moved, *, is_undone: bool) -> None:
    """Say what became of the subscriptions, on standard error."""
    from wholefeed.web.moving import IN_WORDS, Left

    number, all_of_them = moved.rewritten, moved.rewritten + len(moved.left)
    way = "lead to their publishers again" if is_undone else "go through the proxy now"
    tell(f"{number} of {all_of_them} subscriptions {way}")
    left = [each for each in moved.left if each.why not in (Left.ALREADY, Left.DIRECT)]
    for each in left[:_SHOWN]:
        tell(f"line {each.line}, left as it is: {each.url or 'nothing'}: {IN_WORDS[each.why]}")
    if len(left) > _SHOWN:
        tell(f"{len(left) - _SHOWN} more are left as they are")
    for why in (Left.ALREADY, Left.DIRECT):
        if count := sum(each.why is why for each in moved.left):
            tell(f"left as they are: {count}: {IN_WORDS[why]}")


OPML: Final = Command(
    name="opml",
    summary="lead a reader's subscription list (OPML) through the proxy, or back; or export the known feeds",
    examples="  wholefeed opml subscriptions.opml -o moved.opml\n"
    "  wholefeed opml --undo moved.opml -o subscriptions.opml\n"
    "  wholefeed opml --export -o wholefeed.opml\n"
    "  newsboat -e | wholefeed opml --base http://192.168.1.5:8080 - > moved.opml",
    run=_opml,
    add_arguments=_add_opml,
)
