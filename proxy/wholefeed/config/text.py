"""The configuration as TOML text: the effective one with its secrets masked, and the commented example.

For `wholefeed config` and `config.example.toml`; both can be read back by
`wholefeed.config.tables.load_config`, but for a masked access token:
that is refused, or a copied configuration would have a token that everybody knows.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Final

from wholefeed.config.places import without_password
from wholefeed.config.sources import Key
from wholefeed.config.tables import KEYS, Config

_MASK: Final = "***"
_USERINFO: Final = re.compile(r"(?<=://)[^/@]*@")

_EXAMPLE_HEAD: Final = """\
# wholefeed: every key with its default. Each may be left out.
#
# The file is the one of --config, else of $WHOLEFEED_CONFIG, else ./config.toml. The environment
# goes over it (WHOLEFEED_<SECTION>_<KEY>, lists with commas), and flags go over both. For a secret
# WHOLEFEED_<SECTION>_<KEY>_FILE may name a file that holds it.
"""


def masked(config: Config) -> str:
    """The effective configuration as TOML; tokens, keys, and credentials in URLs show as `***`."""
    parts = []
    for section, keys in groupby(KEYS, key=lambda key: key.section):
        table = getattr(config, section)
        lines = [f"{key.key} = {toml_value(_masked_value(key, getattr(table, key.key)))}" for key in keys]
        parts.append("\n".join([f"[{section}]", *lines]))
    return "\n\n".join(parts) + "\n"


def example() -> str:
    """Every key with its default and a line of why: the text of `config.example.toml`."""
    parts = [_EXAMPLE_HEAD.rstrip()]
    for section, keys in groupby(KEYS, key=lambda key: key.section):
        lines = [f"# {key.why}\n{key.key} = {toml_value(key.default)}" for key in keys]
        parts.append("\n".join([f"[{section}]", *lines]))
    return "\n\n".join(parts) + "\n"


def toml_value(value: object) -> str:
    """A text, number, truth value or list of them in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    assert isinstance(value, int | float)
    return str(int(value)) if value == int(value) else repr(value)


def _masked_value(key: Key, value: object) -> object:
    if not key.secret or not value:
        return value
    if key.name == "fetch.proxy":
        return _USERINFO.sub(f"{_MASK}@", str(value))
    if key.name == "store.url":
        return without_password(str(value))
    return (_MASK,) * len(value) if isinstance(value, tuple) else _MASK
