"""The configuration as file, environment and flags say it, or a mapping.

config = load_config(None, os.environ, {"server.port": 9000})
config.fetch.concurrency
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from wholefeed.config.sources import read_tables, read_values
from wholefeed.config.tables import KEYS, SECTIONS, Config, FreshnessConfig
from wholefeed.errors import ConfigError


def load_config(path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Config:
    """Read the configuration: the file, then the environment, then the flags; later wins.

    Args:
        path: The TOML file that was asked for; None: `$WHOLEFEED_CONFIG`, else `./config.toml` if there.
        environ: The environment: `WHOLEFEED_<SECTION>_<KEY>`, lists with commas or as a TOML array.
        overrides: What flags set, by dotted key, e.g. `{"server.port": 9000}`.

    Raises:
        ConfigError: The file cannot be read, a section, key or variable is unknown, or a value is not
            allowed; the message names the key, the value, where it stands and what is allowed.
    """
    return _made(read_values(KEYS, path, environ, overrides))


def config_of(tables: Mapping[str, object]) -> Config:
    """Return the configuration that a mapping says, with the sections and keys of the TOML file.

    Neither file nor environment counts. Errors as in `load_config`.
    """
    return _made(read_tables(KEYS, tables))


def _made(values: Mapping[str, Mapping[str, Any]]) -> Config:
    config = Config(**{name: table(**values[name]) for name, table in SECTIONS.items()})
    _check_order(config.freshness)
    return config


def _check_order(freshness: FreshnessConfig) -> None:
    names = ("minimum_seconds", "default_seconds", "maximum_seconds")
    for lower, upper in pairwise(names):
        low, high = getattr(freshness, lower), getattr(freshness, upper)
        if low > high:
            raise ConfigError(
                f"freshness.{lower} = {low:g} is above freshness.{upper} = {high:g}: "
                "expected minimum_seconds <= default_seconds <= maximum_seconds"
            )
