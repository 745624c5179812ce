"""The operator's commands: `wholefeed serve`, `config`, `doctor` and `healthcheck`."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wholefeed.cli.base import (
    EXIT_DONE,
    EXIT_ERROR,
    Command,
    fail,
    json_text,
    load,
    run,
    show,
    tell,
)

if TYPE_CHECKING:
    from wholefeed.config.tables import Config


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (server.host)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 takes a free one (server.port)")


def _serve(options: argparse.Namespace) -> int:
    with _importing():
        config = load(options, server_host=options.host, server_port=options.port)
        import structlog

        from wholefeed.app import serve
        from wholefeed.cli.access_token import ensure_token, forget_unseen, notice
        from wholefeed.cli.address import http_url, note, server_address, withdraw
        from wholefeed.logs import configure_logging
        from wholefeed.server.allocator import give_large_blocks_back
        from wholefeed.server.listening import Supervisor

    configure_logging(config.log)
    log = structlog.get_logger()
    token = ensure_token(config)
    if token.was_exposed:
        log.warning("token.tightened", path=str(token.path))
    config = replace(config, server=replace(config.server, access_token=token.token))
    has_started = False

    def on_started(_host: str, port: int) -> None:
        nonlocal has_started
        has_started = True
        note(config, port)
        if token.is_new:
            log.info("token.created", path=str(token.path))
            tell(notice(token, config.server.public_url or f"http://YOUR-HOST:{port}"))
        if _is_watched(config):
            host, _ = server_address(config)
            base = config.server.public_url or http_url(host, port)
            tell(
                f"open {base}/ in a browser; `wholefeed url FEED` prints what to subscribe to; Ctrl-C ends it"
            )

    try:
        give_large_blocks_back(os.environ)
        run(serve(config, on_started=on_started, supervisor=Supervisor.of(os.environ)))
    except OSError as exc:
        problem = f"the server ended: {exc}" if has_started else _start_problem(config, exc)
        return fail(problem, EXIT_ERROR)
    except KeyboardInterrupt:  # before the server listens for it
        return EXIT_DONE
    finally:
        if has_started:
            withdraw(config)
        else:
            forget_unseen(token)
    return EXIT_DONE


@contextmanager
def _importing() -> Iterator[None]:
    # To scan these lasting objects takes a sixth of the start.
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _is_watched(config: Config) -> bool:
    """Return whether people read standard error; beside a JSON log, programs may."""
    if config.log.format == "auto":
        return sys.stderr is not None and sys.stderr.isatty()
    return config.log.format == "console"


def _start_problem(config: Config, exc: OSError) -> str:
    if config.server.socket and exc.filename == config.server.socket:
        return f"cannot listen on server.socket = {config.server.socket}: {exc.strerror}"
    address = f"{config.server.host}, port {config.server.port}"
    if exc.errno == errno.EADDRINUSE:
        return f"cannot listen on {address}: another program listens there; try {_other_port(config)}"
    if exc.errno in (errno.EACCES, errno.EPERM) and exc.filename is None:
        return f"cannot listen on {address}: not permitted; ports above 1023 are (see --port)"
    if exc.errno == errno.EADDRNOTAVAIL:
        return (
            f"cannot listen on {address}: this machine has no such address; --host 0.0.0.0 listens on"
            " all that it has"
        )
    return f"cannot start on {address}: {exc.strerror or exc}"


def _other_port(config: Config) -> str:
    """Return the command for another port."""
    port = _OTHER_PORTS[config.server.port == _OTHER_PORTS[0]]
    is_made = os.environ.get("STARTED_BY") == "make serve"
    return f"make serve ARGS='--port {port}'" if is_made else f"wholefeed serve --port {port}"


_OTHER_PORTS: Final = (9000, 9001)


SERVE: Final = Command(
    name="serve",
    summary="run the proxy until SIGTERM, SIGHUP or Ctrl-C",
    examples="  wholefeed serve --port 9000\n"
    "  WHOLEFEED_STORE_PATH=/var/lib/wholefeed/feeds.db wholefeed serve --config /etc/wholefeed.toml",
    run=_serve,
    add_arguments=_add_serve,
)


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--example", action="store_true", help="print every key with its default and its purpose"
    )


def _config(options: argparse.Namespace) -> int:
    from wholefeed.config.tables import example, mask

    show(example() if options.example else mask(load(options)))
    return EXIT_DONE


CONFIG: Final = Command(
    name="config",
    summary="print the effective configuration as TOML, secrets masked",
    examples="  wholefeed config\n  wholefeed config --example > config.toml",
    run=_config,
    add_arguments=_add_config,
)


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    url_help = "a document to fetch as the proxy does"
    parser.add_argument("url", metavar="URL", nargs="?", default="", help=url_help)
    parser.add_argument("--offline", action="store_true", help="send no request to other machines")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def _doctor(options: argparse.Namespace) -> int:
    from wholefeed.cli.address import with_running
    from wholefeed.cli.doctor import CheckVerdict, as_object, as_text, run_checks, this_machine, worst
    from wholefeed.web.request import feed_url

    config = with_running(load(options))
    url = feed_url(options.url) if options.url else ""
    found = run(run_checks(config, url, this_machine(), is_offline=options.offline))
    show(json_text(as_object(found)) if options.json else as_text(found))
    return EXIT_ERROR if worst(found) is CheckVerdict.WRONG else EXIT_DONE


DOCTOR: Final = Command(
    name="doctor",
    summary="check what wholefeed needs, and say how to mend each fault (exit code 0 or 1)",
    examples="  wholefeed doctor\n"
    "  wholefeed doctor https://example.org/feed.atom\n"
    "  wholefeed doctor --offline --json",
    run=_doctor,
    add_arguments=_add_doctor,
)


_OK: Final = 200


def _healthcheck(options: argparse.Namespace) -> int:
    from wholefeed.cli.address import ask_for_health, server_address, with_running

    config = with_running(load(options))
    try:
        status, _ = ask_for_health(config)
    except OSError as exc:
        host, port = server_address(config)
        return fail(
            f"no answer from {host}, port {port}: {exc.strerror or exc}; does `wholefeed serve` run?",
            EXIT_ERROR,
        )
    if status != _OK:
        return fail(f"expected status 200 of /healthz, got {status}", EXIT_ERROR)
    show("healthy\n")
    return EXIT_DONE


HEALTHCHECK: Final = Command(
    name="healthcheck",
    summary="ask the running proxy for /healthz (exit 0 or 1); for containers",
    examples="  wholefeed healthcheck\n  WHOLEFEED_SERVER_PORT=9000 wholefeed healthcheck",
    run=_healthcheck,
)
