"""How an extra of the package is added to this installation, from where it stands.

    to_add("postgres")      # "make serve EXTRAS=postgres in /home/me/wholefeed"

wholefeed's own name is no use here: what is installed may have come from a checkout or from a wheel's file.
"""

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
    """Return what to type to have an extra."""
    checkout = _checkout()
    if checkout is not None and Path(sys.prefix) == checkout / ".venv":
        return f"make serve EXTRAS={extra} in {checkout}"
    with suppress(metadata.PackageNotFoundError):
        found = filter(None, map(_EXTRA.match, metadata.requires("wholefeed") or []))
        return to_install(each["requirement"].strip() for each in found if each["extra"] == extra)
    return f"make serve EXTRAS={extra} in a checkout"


def to_install(requirements: Iterable[str]) -> str:
    """Return what to type to have these in the environment of this interpreter, which may lack pip."""
    pip = "{} -m pip" if find_spec("pip") is not None else "pip --python {}"
    return f"{pip.format(shlex.quote(sys.executable))} install {shlex.join(requirements)}"


def _checkout() -> Path | None:
    """Return the checkout that is installed as it stands (PEP 610); None: it is installed in another way."""
    with suppress(metadata.PackageNotFoundError, KeyError, ValueError):
        told = json.loads(metadata.distribution("wholefeed").read_text("direct_url.json") or "{}")
        if told["dir_info"].get("editable"):
            return Path(unquote(urlsplit(told["url"]).path))
    return None
