"""Secrets that stand in a file of their own, as Docker, Kubernetes and systemd hand them to a process.

    read_secret("/run/secrets/token", "WHOLEFEED_SERVER_ACCESS_TOKEN_FILE", is_list=False)      # the token

No message shows anything of what is in the file, not even where it is no text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wholefeed.errors import ConfigError

SUFFIX: Final = "_FILE"
"""Of the variable that names the file, behind that of the key."""

_MOST_BYTES: Final = 65536


def read_secret(path: str, variable: str, *, is_list: bool) -> object:
    """Return what a file holds: its one line, or each of its lines. Blanks around a line do not count.

    Args:
        path: As the variable has it.
        variable: Its name, for messages.
        is_list: Whether the key takes several values.

    Raises:
        ConfigError: It cannot be read, is empty, too large or no text, or has more lines than one.
    """
    if not path.strip():
        raise ConfigError(f"expected the path of a file in {variable}, got nothing")
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or "no path"
        raise ConfigError(f"cannot read the file {path} ({variable}): {reason}") from exc
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"expected at most {_MOST_BYTES} bytes in {path} ({variable}), got more")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # the error quotes the content, so it must not be the cause of ours
        raise ConfigError(f"expected text in {path} ({variable}), got other bytes") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ConfigError(f"expected a secret in {path} ({variable}), got an empty file")
    if is_list:
        return lines
    if len(lines) > 1:
        raise ConfigError(f"expected one line in {path} ({variable}), got {len(lines)}")
    return lines[0]
