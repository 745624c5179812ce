"""Figures of benchmarks, to be stored and compared.

Figure("answer.304", "µs", values, {"aiohttp": others})
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.support.report import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of several runs.

    Args:
        name: The measured quantity, in words with dots.
        unit: Of the values.
        values: One of each run.
        beside: Values of others in the same runs, by their name.
    """

    name: str
    unit: str
    values: list[float]
    beside: dict[str, list[float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the figure as JSON with four digits a value."""
        kept = dataclasses.asdict(self)
        kept["values"] = [_short(value) for value in self.values]
        kept["beside"] = {who: [_short(value) for value in values] for who, values in self.beside.items()}
        return kept


def shown(values: Sequence[float]) -> str:
    """Return the least and the median of several values, `58 (61)`, or a single value."""
    least, middle = amount(min(values)), amount(statistics.median(values))
    return least if len(values) == 1 else f"{least} ({middle})"


def amount(value: float) -> str:
    """Return a number with about three digits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def times(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the median of the ratios, run by run: within a run both sides met the same load."""
    return statistics.median(value / other for value, other in zip(values, others, strict=True))


def show(figures: Sequence[Figure]) -> None:
    """Print least and median of each figure, and its ratio to the others."""
    table = Table("least (median)", "unit", "here", "beside it", "times", first_width=44)
    for figure in figures:
        if not figure.beside:
            table.row(figure.name, figure.unit, shown(figure.values))
        for who, values in figure.beside.items():
            ratio = amount(times(figure.values, values))
            table.row(f"{figure.name}, {who}", figure.unit, shown(figure.values), shown(values), ratio)


def _short(value: float) -> float:
    return float(f"{value:.4g}")
