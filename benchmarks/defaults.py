"""Candidate defaults, scored over many sets by leave-sets-out; the rule is in docs/defaults.md.

python benchmarks/defaults.py connectivity --data DIR --seeds 2
python benchmarks/defaults.py margin --seeds 2
python benchmarks/defaults.py width --seeds 1
python benchmarks/defaults.py methods --seeds 8
python benchmarks/defaults.py principal --data DIR --seeds 2

A question names a method and a few values of a parameter; the first one is the current default. Every value
is run on every set, with the true number of clusters. A value replaces the default only if leave-sets-out
does: on each set, take the value whose mean V-measure over all *other* sets is highest, and compare the mean
of what it gives with that of the default. `--data` adds the dense labeled sets of a directory. The question
"methods" compares two methods at their defaults. The standard error after +- is that of the mean difference
from the first value over the sets.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.choice import real_sets
from benchmarks.generators import generated
from ravine import MaximumMargin, MinimumDensity, PrincipalDirection, SpectralConnectivity, metrics
from ravine.split import margin as margin_search

Array = np.ndarray[Any, Any]
Make = Callable[[int], Any]


def connectivity() -> dict[str, Make]:
    """The scale of the graph, the first interval, and the judge of leaves of SpectralConnectivity."""
    ways: dict[str, dict[str, Any]] = {
        "default": {},
        "sigma_factor=2 (the paper's)": {"sigma_factor": 2.0},
        "sigma_factor=0.5": {"sigma_factor": 0.5},
        "beta=3": {"beta": 3.0},
        "beta=1": {"beta": 1.0},
        "split_order=size (the paper's)": {"split_order": "size"},
        "split_order=depth": {"split_order": "depth"},
    }
    found: dict[str, Make] = {name: _of(SpectralConnectivity, way) for name, way in ways.items()}
    return found | {"MinimumDensity, to compare": _of(MinimumDensity, {})}


def margin() -> dict[str, Make]:
    """C and balance of MaximumMargin, around C="auto" (10 over the first principal variance) and 0.03."""
    ways: dict[str, dict[str, Any]] = {"default": {}}
    ways |= {f"balance={balance}": {"balance": balance} for balance in (0.01, 0.1, 0.3)}
    return {name: _of(MaximumMargin, way) for name, way in ways.items()} | {
        f"C={factor} times auto": lambda k, factor=factor: _ScaledMargin(k, factor) for factor in (0.3, 3.0)
    }


def width() -> dict[str, Make]:
    """The width of the RBF kernel: gamma relative to that of the default rule."""
    return {
        f"gamma={factor:g} times auto" if factor != 1 else "default": (
            lambda k, factor=factor: _ScaledWidth(k, factor)  # type: ignore[misc]
        )
        for factor in (1.0, 0.25, 4.0)
    }


def methods() -> dict[str, Make]:
    """SpectralConnectivity and MinimumDensity at their defaults."""
    return {
        "SpectralConnectivity": _of(SpectralConnectivity, {}),
        "MinimumDensity, to compare": _of(MinimumDensity, {}),
    }


def principal() -> dict[str, Make]:
    """The threshold of PrincipalDirection."""
    return {
        "threshold=mean": _of(PrincipalDirection, {"threshold": "mean"}),
        "threshold=density": _of(PrincipalDirection, {"threshold": "density"}),
    }


class _ScaledMargin:
    """MaximumMargin with a multiple of C="auto", which depends on the rows of every node."""

    def __init__(self, k: int, factor: float) -> None:
        self.k, self.factor = k, factor

    def fit(self, X: Array) -> Any:
        with mock.patch.object(margin_search, "AUTO_C", self.factor * margin_search.AUTO_C):
            return MaximumMargin(self.k).fit(X)


class _ScaledWidth:
    """MinimumDensity with the RBF kernel and a multiple of gamma="auto", which depends on the rows."""

    def __init__(self, k: int, factor: float) -> None:
        self.k, self.factor = k, factor

    def fit(self, X: Array) -> Any:
        usual = MinimumDensity(self.k, kernel="rbf").fit(X)
        if self.factor == 1.0:
            return usual
        gamma = usual.feature_map_.kernel.parameters["gamma"]  # type: ignore[union-attr]
        return MinimumDensity(self.k, kernel="rbf", kernel_params={"gamma": self.factor * gamma}).fit(X)


def _of(make: Any, parameters: dict[str, Any]) -> Make:
    return lambda k: make(k, **parameters)


QUESTIONS: dict[str, Callable[[], dict[str, Make]]] = {
    "connectivity": connectivity,
    "margin": margin,
    "width": width,
    "methods": methods,
    "principal": principal,
}


def sets(data: str | None, max_rows: int, seeds: int) -> Iterator[tuple[str, str, Array, Array]]:
    """Yield the family (real or generated), name, rows and classes of every set."""
    for name, X, y in real_sets(data) if data else ():
        if len(X) <= max_rows:
            yield "real", name, X, y
    for seed in range(seeds):
        for name, X, y in generated(seed):
            yield "generated", name, X, y


def left_out(table: Array) -> tuple[float, dict[int, int]]:
    """Return the mean of the values chosen on all other sets, and how often each was chosen.

    >>> left_out(np.array([[0.5, 0.6], [0.5, 0.7], [0.9, 0.1]]))[1]
    {1: 1, 0: 2}
    """
    chosen = [int(np.argmax(np.delete(table, i, axis=0).mean(axis=0))) for i in range(len(table))]
    counts = {value: chosen.count(value) for value in sorted(set(chosen), reverse=True)}
    return float(np.mean([table[i, value] for i, value in enumerate(chosen)])), counts


def standard_errors(table: Array) -> Array:
    """Return the standard errors of the mean differences of all columns from the first, over the rows.

    >>> standard_errors(np.array([[0.5, 0.6], [0.5, 0.8]])).round(3).tolist()
    [0.0, 0.1]
    """
    differences = table - table[:, :1]
    return np.asarray(differences.std(axis=0, ddof=1) / np.sqrt(len(table)))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("question", choices=QUESTIONS)
    parser.add_argument("--data", help="directory of npz files (X, y)")
    parser.add_argument("--rows", type=int, default=2500, help="rows of a real set, at most (2500)")
    parser.add_argument("--seeds", type=int, default=1, help="generated sets of so many seeds")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    ways = QUESTIONS[arguments.question]()
    families, scores = [], []
    for family, name, X, y in sets(arguments.data, arguments.rows, arguments.seeds):
        k = len(np.unique(y))
        families.append(family)
        scores.append([metrics.v_measure(y, make(k).fit(X).labels_) for make in ways.values()])
        print(f"{name:24}", "  ".join(f"{v:.3f}" for v in scores[-1]), flush=True)
    table, compared = np.array(scores), ["compare" not in way for way in ways]
    for family in [*dict.fromkeys(families), "all"]:
        some = table[[family in ("all", one) for one in families]]
        print(f"\n{family}, {len(some)} sets")
        errors = standard_errors(some)
        for way, v, error in zip(ways, some.mean(axis=0), errors, strict=True):
            print(f"  {way:34} {v:.4f} +- {error:.4f}")
        mean, counts = left_out(some[:, compared])
        names = ", ".join(f"{list(ways)[value]} {count} times" for value, count in counts.items())
        print(f"  {'leave-sets-out':34} {mean:.4f} ({names})")


if __name__ == "__main__":
    main()
