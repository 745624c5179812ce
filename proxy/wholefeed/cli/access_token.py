"""The access token of a proxy that others can reach (docs/faults.md row 81).

Unless its operator opens it, its first start makes a random token and keeps it beside the database.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wholefeed.config.rules import SHORTEST_TOKEN, secret_item
from wholefeed.config.tables import Config, ServerConfig
from wholefeed.errors import StoreError
from wholefeed.permissions import explain_failure

_TOKEN_BYTES: Final = 24
_MODE: Final = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenResult:
    token: str
    """Empty: no token needed."""
    path: Path | None = None
    """The token's file; None: no token, or a configured one."""
    is_new: bool = False
    """Whether to show the token to the operator, this once."""
    was_exposed: bool = False
    """Whether other users could read the file until now."""


def ensure_token(config: Config) -> TokenResult:
    """Return the configured token, or a kept or new one if others can reach the proxy.

    Raises:
        StoreError: The token's file is unusable.
    """
    if not needs_token(config.server):
        return TokenResult(token=config.server.access_token)
    path = _file_of(config)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except FileExistsError:
        return _read(path)
    except OSError as exc:
        raise StoreError(f"cannot store an access token in {path}: {explain_failure(path, exc)}") from exc
    made = TokenResult(token=secrets.token_urlsafe(_TOKEN_BYTES), path=path, is_new=True)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(made.token + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        forget_unseen(made)
        raise StoreError(f"cannot store an access token in {path}: {exc.strerror}") from exc
    return made


def known_token(config: Config) -> str:
    """Return the token that a proxy of this configuration needs; empty: none so far.

    Raises:
        StoreError: The token's file is unusable.
    """
    path = _file_of(config)
    is_kept = needs_token(config.server) and path.exists()
    return _read(path).token if is_kept else config.server.access_token


def notice(found: TokenResult, base: str) -> str:
    return (
        "others can reach this address, so readers need an access token. wholefeed has made one, stored in\n"
        f"{found.path}; it is not shown again. Subscribe to\n"
        f"  {base}/feed?token={found.token}&url=FEED-URL"
    )


def forget_unseen(found: TokenResult) -> None:
    """Remove a new token that nobody saw, so that the next start shows another."""
    if found.is_new and found.path is not None:
        with suppress(OSError):
            found.path.unlink()


def needs_token(server: ServerConfig) -> bool:
    """Return whether others could use this proxy without protection and without `server.open`."""
    return not (server.access_token or server.signing_keys or server.open or is_loopback(server.host))


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches `host`; names count as public, except localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        name = host.lower().rstrip(".")
        return name == "localhost" or name.endswith(".localhost")


def _file_of(config: Config) -> Path:
    return Path(f"{config.store.path}.token")


def _read(path: Path) -> TokenResult:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="ascii") as file:
            was_exposed = bool(stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077)
            if was_exposed:
                os.fchmod(file.fileno(), _MODE)
            token = secret_item(file.read().strip())
    except OSError as exc:
        raise StoreError(f"cannot use the access token in {path}: {explain_failure(path, exc)}") from exc
    except ValueError as exc:
        raise StoreError(
            f"expected an access token of at least {SHORTEST_TOKEN} printable characters in {path}: "
            "remove the file to have a new one made, or set server.access_token"
        ) from exc
    return TokenResult(token=token, path=path, was_exposed=was_exposed)
