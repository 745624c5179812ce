"""How to add an extra of the package to this installation."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_EXTRA: Final = re.compile(r"(?P<requirement>[^;]+);.*\bextra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]")


def to_add(extra: str) -> str:
    """Return the command that adds an extra."""
    checkout = _checkout()
    if checkout is not None and Path(sys.prefix) == checkout / ".venv":
        return f"make serve EXTRAS={extra} in {checkout}"
    with suppress(metadata.PackageNotFoundError):
        # wholefeed's own name is no use here: the installation may come from a wheel file.
        found = filter(None, map(_EXTRA.match, metadata.requires("wholefeed") or []))
        return to_install(each["requirement"].strip() for each in found if each["extra"] == extra)
    return f"make serve EXTRAS={extra} in a checkout"


def to_install(requirements: Iterable[str]) -> str:
    """Return the command that installs requirements here, where pip may be missing."""
    pip = "{} -m pip" if find_spec("pip") is not None else "pip --python {}"
    return f"{pip.format(shlex.quote(sys.executable))} install {shlex.join(requirements)}"


def _checkout() -> Path | None:
    # PEP 610: the folder of an editable installation.
    with suppress(metadata.PackageNotFoundError, KeyError, ValueError):
        told = json.loads(metadata.distribution("wholefeed").read_text("direct_url.json") or "{}")
        if told["dir_info"].get("editable"):
            return Path(unquote(urlsplit(told["url"]).path))
    return None
