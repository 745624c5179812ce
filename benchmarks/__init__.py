"""Measurements quoted in README and docs, each run by one command."""

import sys
from types import TracebackType


def _explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Name the command that installs a missing package: `make serve` and `make demo` do not install it."""
    if isinstance(error, ModuleNotFoundError):
        print(
            f"{error.name} is not installed here; `make setup` installs what benchmarks need", file=sys.stderr
        )
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _explain
