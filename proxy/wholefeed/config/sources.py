"""Where configuration values come from: a TOML file, the environment, the flags of the command line.

Generic over the list of keys; it knows neither their names nor their types. Later sources win, and every
value that is refused is named with its key, its value, its place and what is allowed.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wholefeed.config.rules import Rule
from wholefeed.config.secret_files import SUFFIX, read_secret
from wholefeed.errors import ConfigError

PREFIX: Final = "WHOLEFEED_"
FILE_VARIABLE: Final = "WHOLEFEED_CONFIG"
DEFAULT_FILE: Final = "config.toml"

_SHOWN_CHARACTERS: Final = 80
_FEW: Final = 10
_SERVICE_LINK: Final = re.compile(
    r"WHOLEFEED_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Variables that Kubernetes puts into every pod beside a service named wholefeed: not ours, not an error."""


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key: its default, the rule for its value, a line of why, and whether it is secret."""

    section: str
    key: str
    default: object
    rule: Rule
    why: str
    secret: bool = False

    @property
    def name(self) -> str:
        """The dotted name, as messages and flags use it."""
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"{PREFIX}{self.section}_{self.key}".upper()


def read_values(
    keys: Sequence[Key], path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> dict[str, dict[str, Any]]:
    """Every section with the values that were given for its keys, checked; defaults are not filled in.

    Raises:
        ConfigError: As `wholefeed.config.tables.load_config` says.
    """
    by_name = {key.name: key for key in keys}
    return _taken(
        keys,
        _from_file(by_name, path, environ),
        _from_environment(by_name, environ),
        _from_flags(by_name, overrides),
    )


def read_tables(keys: Sequence[Key], tables: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """The same of a mapping that a program gives: what the TOML file would be read as.

    Raises:
        ConfigError: As `read_values` does.
    """
    return _taken(keys, _from_tables({key.name: key for key in keys}, tables, "in the mapping"))


def _taken(keys: Sequence[Key], *sources: _Given) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {key.section: {} for key in keys}
    for source in sources:
        for key, value, place in source:
            values[key.section][key.key] = _checked(key, value, place)
    return values


_Given = Iterator[tuple[Key, object, str]]


def _from_file(by_name: Mapping[str, Key], path: Path | None, environ: Mapping[str, str]) -> _Given:
    file, asked_by = _chosen_file(path, environ)
    if file is not None:
        yield from _from_tables(by_name, _read_toml(file, asked_by), f"in {file}")


def _from_tables(by_name: Mapping[str, Key], tables: Mapping[str, object], place: str) -> _Given:
    sections = {key.section for key in by_name.values()}
    for section, table in tables.items():
        if not isinstance(table, Mapping):
            raise _no_section(by_name, sections, section, place)
        if section not in sections:
            raise ConfigError(f"unknown section [{section}] {place}{_hint(section, sections)}")
        for name, value in table.items():
            yield _known(by_name, f"{section}.{name}", place), value, place


def _no_section(by_name: Mapping[str, Key], sections: set[str], name: str, place: str) -> ConfigError:
    if name in sections:
        return ConfigError(f"{name} {place} must be a section, [{name}], not a value")
    places = [f"[{key.section}]" for key in by_name.values() if key.key == name]
    hint = f"; {name} belongs below {places[0]}" if places else _hint(name, sections)
    return ConfigError(f"{name} {place} is a key outside a section{hint}")


def _chosen_file(path: Path | None, environ: Mapping[str, str]) -> tuple[Path | None, str]:
    if path is not None:
        return path, "--config"
    if environ.get(FILE_VARIABLE):
        return Path(environ[FILE_VARIABLE]), FILE_VARIABLE
    default = Path(DEFAULT_FILE)
    return (default if default.is_file() else None), "the default"


def _read_toml(file: Path, asked_by: str) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as exc:
        raise ConfigError(
            f"cannot read the configuration file {file} ({asked_by}): {exc.strerror};"
            " `wholefeed config --example` prints one to begin with"
        ) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"expected TOML in {file}: {exc}") from exc


def _from_environment(by_name: Mapping[str, Key], environ: Mapping[str, str]) -> _Given:
    by_variable = {key.variable: key for key in by_name.values()}
    by_file = {key.variable + SUFFIX: key for key in by_name.values() if key.secret}
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE or _is_service_link(variable, text):
            continue
        if variable in by_file:
            yield _from_secret_file(by_file[variable], variable, environ)
            continue
        if variable not in by_variable:
            raise _unknown_variable(variable, by_variable, by_file)
        key = by_variable[variable]
        place = f"from the environment variable {variable}"
        try:
            value = key.rule.from_text(text)
        except ValueError as exc:
            raise _refused(key, text, place, "") from exc
        yield key, value, place


def _from_secret_file(key: Key, variable: str, environ: Mapping[str, str]) -> tuple[Key, object, str]:
    if key.variable in environ:
        raise ConfigError(f"{key.variable} and {variable} are both set: expected one of them")
    path = environ[variable]
    value = read_secret(path, variable, is_list=isinstance(key.default, tuple))
    return key, value, f"from the file {path} ({variable})"


def _unknown_variable(variable: str, known: Iterable[str], of_files: Iterable[str]) -> ConfigError:
    hint = _hint(variable, known)
    if variable.endswith(SUFFIX):
        hint = f"; only secrets are read from files: {', '.join(sorted(of_files))}"
    return ConfigError(f"unknown environment variable {variable}{hint}")


def _is_service_link(variable: str, value: str) -> bool:
    return bool(_SERVICE_LINK.fullmatch(variable)) or (
        variable.endswith("_PORT") and value.startswith("tcp://")
    )


def _from_flags(by_name: Mapping[str, Key], overrides: Mapping[str, object]) -> _Given:
    for name, value in overrides.items():
        yield _known(by_name, name, "on the command line"), value, "on the command line"


def _known(by_name: Mapping[str, Key], name: str, place: str) -> Key:
    if name in by_name:
        return by_name[name]
    last = name.rpartition(".")[2]
    elsewhere = [full for full in by_name if full.rpartition(".")[2] == last]
    hint = f"; did you mean {elsewhere[0]}?" if elsewhere else _hint(name, by_name)
    raise ConfigError(f"unknown key {name} {place}{hint}")


def _checked(key: Key, value: object, place: str) -> object:
    try:
        return key.rule.check(value)
    except ValueError as exc:
        raise _refused(key, value, place, str(exc)) from exc


def _refused(key: Key, value: object, place: str, reason: str) -> ConfigError:
    shown = "***" if key.secret else repr(value)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "…"
    because = f" ({reason})" if reason else ""
    return ConfigError(f"{key.name} = {shown} {place} is not allowed{because}: expected {key.rule.allowed}")


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(names)}" if len(names) <= _FEW else ""
