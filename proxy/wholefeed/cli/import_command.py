"""`wholefeed import` (I1): documents of a feed that people have kept, in files and archives."""

from __future__ import annotations

import argparse
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from wholefeed.cli.base import (
    EXIT_DONE,
    EXIT_ERROR,
    Command,
    add_url,
    load_for_result,
    show,
    tell,
)

if TYPE_CHECKING:
    from wholefeed.config.tables import Config, LimitsConfig
    from wholefeed.service.imports import SuppliedDocument


def _instant(text: str) -> float:
    from wholefeed.core.text.dates import parse_rfc3339

    found = parse_rfc3339(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected an instant such as 2012-05-01T12:00:00Z, got {text!r}")
    return found


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    file_help = "an old document of the feed, a feed reader's export or database, or a .zip file of these"
    parser.add_argument("files", metavar="FILE", nargs="+", help=file_help)
    at_help = "the time of the document (default: the newest date in it, else the file's date)"
    parser.add_argument("--at", metavar="INSTANT", type=_instant, help=at_help)
    force_help = "import a document even if it does not say that it belongs to this feed"
    parser.add_argument("--force", action="store_true", help=force_help)
    remove_help = "remove the documents that were imported by these names (see wholefeed explain)"
    parser.add_argument("--remove", action="store_true", help=remove_help)


def _import(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import ask
    from wholefeed.core.text.urls import is_http
    from wholefeed.core.words import count_noun
    from wholefeed.web.request import feed_url

    url = feed_url(options.url)
    if options.remove:
        for given in options.files:
            # A feed that is continued goes by its URL (I3).
            name = given if is_http(given) else _format_name(Path(given))
            removed = ask(config, lambda feeds, name=name: feeds.take_out(url, name))  # type: ignore[misc]
            show(f"{name}: {count_noun(removed, 'document', 'documents')} removed\n")
        return EXIT_DONE
    are_taken = [_import_file(path, url, options, config) for path in map(Path, options.files)]
    return EXIT_DONE if all(are_taken) else EXIT_ERROR


def _import_file(path: Path, url: str, options: argparse.Namespace, config: Config) -> bool:
    """Import a file, or the files of an archive; return whether nothing of it was refused."""
    from wholefeed.cli.backend import ask
    from wholefeed.cli.output import watch_progress
    from wholefeed.core.words import count_noun
    from wholefeed.errors import ImportRefusedError

    is_fine, taken = True, 0
    passed_over: list[str] = []
    for name, documents in _each(path, url, options, config.limits):
        try:
            if isinstance(documents, str):
                raise ImportRefusedError(documents, slug="limit")
            said = []
            for kept in documents:
                with watch_progress() as progress:
                    said.append(ask(config, lambda feeds, kept=kept: feeds.put_in(url, kept), progress))  # type: ignore[misc]
        except ImportRefusedError as exc:
            # An export may be an archive with a file for each feed.
            if name != _format_name(path) and exc.slug == exc.default_slug and _is_saved(documents):
                passed_over.append(f"{name}: not imported: {exc}")
                continue
            tell(f"{name}: not imported: {exc}")
            is_fine = False
        else:
            show(f"{name}: {_told(said)}\n")
            taken += 1
    if passed_over and taken:
        others = count_noun(len(passed_over), "file", "files")
        show(f"{_format_name(path)}: {others} of other feeds passed over\n")
    elif passed_over:
        tell(
            passed_over[0] + (f", and {len(passed_over) - 1:,} others alike" if len(passed_over) > 1 else "")
        )
        is_fine = False
    return is_fine


def _is_saved(documents: Sequence[SuppliedDocument] | str) -> bool:
    """Return whether these are of a feed reader's file (I4)."""
    from wholefeed.core.saved.exports import may_be_export
    from wholefeed.store.reader_files import is_database

    return not isinstance(documents, str) and any(
        is_database(each.body) or may_be_export(each.body) for each in documents
    )


IMPORT: Final = Command(
    name="import",
    summary="import a feed's old documents, or a feed reader's files (exit code 0: all, 1: not all)",
    examples="  wholefeed import https://example.org/feed.atom feed-2012.xml feed-2014.xml\n"
    "  wholefeed import https://example.org/feed.atom --at 2012-05-01T00:00:00Z old.xml\n"
    "  wholefeed import https://example.org/feed.atom backups.zip\n"
    "  wholefeed import https://example.org/feed.atom ~/.newsboat/cache.db\n"
    "  wholefeed import https://example.org/feed.atom --remove old.xml",
    run=_import,
    add_arguments=_add_arguments,
)


def _add_continue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="the URL of the older feed")
    parser.add_argument("new", metavar="NEW", help="the URL of the newer feed, which continues OLD")


def _continue(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import ask
    from wholefeed.cli.output import watch_progress
    from wholefeed.core.words import count_noun
    from wholefeed.web.request import feed_url

    old, new = feed_url(options.old), feed_url(options.new)
    with watch_progress() as progress:
        said = ask(config, lambda feeds: feeds.continue_feed(old, new), progress)
    entries = count_noun(said["entries"], "entry", "entries")
    kept = (
        ""
        if said["served"] or not said["entries"]
        else "; stored but not served, since the publisher says that the feed is complete"
    )
    show(f"continued: {entries}, {said['new']:,} of them new{kept}\n")
    return EXIT_DONE


CONTINUE: Final = Command(
    name="continue",
    summary="add the entries of the feed OLD to the feed NEW, which continues it",
    examples="  wholefeed continue https://old.example/feed.atom https://new.example/feed.atom",
    run=_continue,
    add_arguments=_add_continue,
)


def _told(said: Sequence[Mapping[str, Any]]) -> str:
    from wholefeed.core.words import count_noun

    taken = [each for each in said if each["outcome"] == "taken"]
    if not taken:
        return "already there"
    entries = count_noun(sum(each["entries"] for each in said), "entry", "entries")
    as_of, new = max(each["as_of"] for each in taken), sum(each["new"] for each in taken)
    told = f"imported: {entries} as of {as_of}, {new:,} of them new"
    if taken[-1]["state"] == "complete":
        return f"{told}; stored but not served, since the publisher says that the feed is complete"
    return told


# Files, and archives of them


def _each(
    path: Path, url: str, options: argparse.Namespace, limits: LimitsConfig
) -> Iterator[tuple[str, Sequence[SuppliedDocument] | str]]:
    """Yield a file or an archive's files, each with its documents; a text explains an unreadable one."""
    from wholefeed.errors import ImportRefusedError
    from wholefeed.service.imports import SuppliedDocument
    from wholefeed.service.saved_files import split_large
    from wholefeed.store.reader_files import require_unused

    shown = _format_name(path)
    try:
        if zipfile.is_zipfile(path):
            members: Iterator[tuple[str, Sequence[bytes] | str, float | None]] = _in_archive(
                path, limits.document_bytes
            )
        elif path.is_file() and path.stat().st_size > limits.document_bytes:
            members = iter([("", split_large(path, url, limits), path.stat().st_mtime)])
        else:
            require_unused(path)
            with path.open("rb") as file:
                members = iter([("", _whole(file, limits.document_bytes), path.stat().st_mtime)])
        for member, bodies, file_at in members:
            name = f"{shown}/{member}" if member else shown
            if isinstance(bodies, str):
                yield name, bodies
                continue
            at, force = options.at, options.force
            yield (
                name,
                [SuppliedDocument(each, name, at=at, file_at=file_at, is_forced=force) for each in bodies],
            )
    except ImportRefusedError as exc:
        yield shown, str(exc)
    except OSError as exc:
        yield shown, exc.strerror or str(exc)


def _format_name(path: Path) -> str:
    """Return a document's name; its folders are nobody's business."""
    return path.name if path.is_absolute() or ".." in path.parts else str(path)


def _whole(file: IO[bytes], most_bytes: int) -> list[bytes] | str:
    body = file.read(most_bytes + 1)
    return [body] if len(body) <= most_bytes else f"larger than limits.document_bytes = {most_bytes}"


_MAX_MEMBERS: Final = 10_000
_LISTS: Final = (".opml", ".opml.xml")
"""Exports of readers have one beside the entries."""
_MAX_RATIO: Final = 200
"""Bytes for each packed byte: feeds reach 5 or 10, very repetitive ones 50."""
_SMALL_BYTES: Final = 1 << 20
"""Exempt from the ratio."""
_MAX_ARCHIVE_BYTES: Final = 1 << 30
"""All unpacked members of one archive."""


def _in_archive(path: Path, most_bytes: int) -> Iterator[tuple[str, list[bytes] | str, float | None]]:
    """Yield an archive's files, but lists of feeds; count the bytes really read, since archives may lie."""
    left_bytes = _MAX_ARCHIVE_BYTES
    try:
        with zipfile.ZipFile(path) as archive:
            files = [
                each
                for each in archive.infolist()
                if not each.is_dir() and not each.filename.lower().endswith(_LISTS)
            ]
            if len(files) > _MAX_MEMBERS:
                yield "", f"expected an archive of at most {_MAX_MEMBERS} files, got {len(files)}", None
                return
            for each in files:
                body = _member(archive, each, min(most_bytes, left_bytes))
                left_bytes -= len(body) if isinstance(body, bytes) else 0
                yield each.filename, [body] if isinstance(body, bytes) else body, _change_instant(each)
    except (zipfile.BadZipFile, RuntimeError, ValueError) as exc:  # also an unknown version, or no UTF-8
        yield "", f"expected an archive that can be read: {exc}", None


# Broken, encrypted, or packed by an unknown method.
_UNREADABLE: Final = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most_bytes: int) -> bytes | str:
    most = min(most_bytes, max(_SMALL_BYTES, _MAX_RATIO * member.compress_size))
    try:
        with archive.open(member) as file:
            body = file.read(most + 1)
    except _UNREADABLE as exc:
        return f"cannot be read: {exc}"
    if len(body) <= most:
        return body
    if most < most_bytes:
        return f"expected at most {_MAX_RATIO} bytes for each compressed byte, got more"
    return (
        f"larger than limits.document_bytes = {most_bytes}, or the archive larger than {_MAX_ARCHIVE_BYTES}"
    )


def _change_instant(member: zipfile.ZipInfo) -> float | None:
    # An archive names no zone.
    try:
        return datetime(*member.date_time, tzinfo=UTC).timestamp()
    except ValueError:
        return None
