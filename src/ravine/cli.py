"""The command line: `ravine demo`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import ravine


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="ravine", description=ravine.__doc__)
    parser.add_argument("--version", action="version", version=f"ravine {ravine.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    demo = commands.add_parser("demo", help="cluster the handwritten digits that ship with scikit-learn")
    demo.set_defaults(run=run_demo)
    arguments = parser.parse_args(argv)
    return int(arguments.run(arguments))


def run_demo(arguments: argparse.Namespace) -> int:
    """Cluster the digits into ten and say in plain words what was found."""
    import warnings

    from sklearn.datasets import load_digits

    from ravine import MinimumDensity, metrics

    digits = load_digits()
    n, d = digits.data.shape
    print(f"{n} handwritten digits, each an image of 8 x 8 pixels: {d} numbers a row.")
    print("ravine looks for ten clusters without being told which digit is which.\n")
    names = [f"row{i // 8}col{i % 8}" for i in range(d)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MinimumDensity(2).fit(digits.data[:200])
        began = time.perf_counter()
        model = MinimumDensity(n_clusters=10, random_state=0).fit(digits.data)
        seconds = time.perf_counter() - began
    print(model.tree_.export_text(names))
    purity = metrics.purity(digits.target, model.labels_)
    v_measure = metrics.v_measure(digits.target, model.labels_)
    print(
        "\nHow to read this: every line with a split is cut in two by a hyperplane through a valley of\n"
        "the density. Depth 0 is no valley at all, depth 1 an empty gap; the pixels named drive the\n"
        "split (+ for the lower branch, - for the upper one).\n\n"
        f"It took {seconds:.2f} s. Now look at the true digits: {purity:.0%} of the rows belong to the\n"
        f"main digit of their cluster (purity), and the V-measure is {v_measure:.2f} (1 is perfect,\n"
        "0 is chance).\n\n"
        "What to try next, in Python:\n"
        "    from ravine import MinimumDensity\n"
        "    model = MinimumDensity(n_clusters=10).fit(X)      # X: your table, one row an object\n"
        "    model.labels_, model.predict(X_new), print(model.tree_.export_text())"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
