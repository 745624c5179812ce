"""Files that secrets come from: whether others on this machine can read them."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from wholefeed.cli.checks.findings import Finding, good, warning
from wholefeed.config.secret_files import SUFFIX
from wholefeed.config.tables import KEYS

_CHECK: Final = "secrets"


def secret_files(store_path: str, environ: Mapping[str, str]) -> dict[Path, str]:
    """Return the files and what each is: those that variables name, and the token that was made. Blocks."""
    named = {
        Path(environ[name]): name for key in KEYS if key.secret and (name := key.variable + SUFFIX) in environ
    }
    made = Path(f"{store_path}.token")
    return named | ({made: "the access token that was made"} if made.exists() else {})


def check_secrets(files: Mapping[Path, str], *, is_container: bool) -> Iterator[Finding]:
    """Judge each file; in a container there are no others than the service. Blocks."""
    for path, what in files.items():
        if not is_container and _is_open_to_others(path.absolute()):
            text = f"others on this machine can read {path} ({what})"
            yield warning(_CHECK, text, f"chmod o-rwx {path}, and make a new secret: this one may be known")
        else:
            yield good(_CHECK, f"{path} ({what})")


def _is_open_to_others(path: Path) -> bool:
    """Whether others may read a file, and enter each folder that it is in."""
    try:
        may_read = path.stat().st_mode & stat.S_IROTH
        return bool(may_read) and all(each.stat().st_mode & stat.S_IXOTH for each in path.parents)
    except OSError:  # of what this user may not look at
        return False
