"""What README and docs quote, each runnable by one command."""

import sys
from types import TracebackType


def _explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say in a line what installs a package that a benchmark lacks: `make serve` and `make demo` do not."""
    if isinstance(error, ModuleNotFoundError):
        print(
            f"{error.name} is not installed here; `make setup` installs what benchmarks need", file=sys.stderr
        )
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _explain
