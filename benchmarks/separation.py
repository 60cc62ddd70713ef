"""Figures 1 to 3 of Maximin Separation Probability Clustering.

python benchmarks/separation.py --data DIR             all figures
python benchmarks/separation.py --data DIR scaling     Figure 1: accuracy when one column is scaled up
python benchmarks/separation.py --data DIR judge       Figures 2 and 3: separation probability and accuracy
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.datasets import load, of_classes, problem
from ravine import MaximinSeparation
from ravine.estimators.judging import SCORE_REGULARIZATION
from ravine.metrics import separation_probability

Array = np.ndarray[Any, Any]
SIX = ("ionosphere", "breast_w_683", "australian", "pima", "letter_ab", "satellite_1_2")
TEN = (*SIX, "spambase", "mnist_3_8", "mnist_1_7", "mnist_8_9")
FACTORS = (1, 2, 4, 8, 16)


def accuracy(y: Array, labels: Array) -> float:
    """Return the share of rows that two clusters put with their class, matched in the better way."""
    right = float(np.mean((y == y.max()) == (labels == labels.max())))
    return max(right, 1 - right)


def scaling(directory: str | None, out: Path) -> None:
    """Scale ten columns, one at a time, by 2 to 16: mean accuracy of each method in percent."""
    import matplotlib.pyplot as plt
    from sklearn.cluster import KMeans

    methods: dict[str, Callable[[Array], Array]] = {
        "k-means": lambda X: KMeans(2, n_init=10, random_state=0).fit_predict(X),
        "mpm from k-means as given": lambda X: MaximinSeparation(2, standardize=False).fit(X).labels_,
        "mpm (default)": lambda X: MaximinSeparation(2).fit(X).labels_,
    }
    print("| dataset | method | " + " | ".join(f"x {a}" for a in FACTORS) + " | fall |")
    print("|" + "---|" * (len(FACTORS) + 3))
    figure, panels = plt.subplots(2, 3, figsize=(11, 6), sharex=True, layout="constrained")
    for name, panel in zip(SIX, panels.flat, strict=True):
        X, y = problem(name, directory)
        columns = np.random.default_rng(0).permutation(X.shape[1])[:10]
        for method, cluster in methods.items():
            found = []
            for factor in FACTORS:
                each = []
                for column in columns if factor > 1 else columns[:1]:
                    scaled = X.copy()
                    scaled[:, column] *= factor
                    each.append(accuracy(y, cluster(scaled)))
                found.append(100 * float(np.mean(each)))
            figures = " | ".join(f"{value:.2f}" for value in found)
            print(f"| {name} | {method} | {figures} | {found[0] - min(found):.2f} |", flush=True)
            panel.plot(FACTORS, found, marker="o", label=method)
        panel.set(title=name, xscale="log", xticks=FACTORS, xticklabels=FACTORS)
    panels[0, 0].legend()
    panels[1, 1].set_xlabel("factor by which one column is scaled")
    panels[0, 0].set_ylabel("accuracy, %")
    figure.savefig(out / "separation_scaling.png", dpi=110)


def pairs(name: str, directory: str | None) -> list[tuple[str, Array, Array]]:
    """Return all pairs of a set's classes as problems."""
    X, y = load(name, directory)
    return [(f"{a} vs {b}", *of_classes(X, y, [a, b])) for a, b in itertools.combinations(np.unique(y), 2)]


def evaluate_projected(directory: str | None, out: Path) -> None:
    """Correlate the separation probability of mpm's clusters with their accuracy, over three groups."""
    import matplotlib.pyplot as plt

    groups = {
        "ten problems": [(name, *problem(name, directory)) for name in TEN],
        "satellite": pairs("satellite", directory),
        "usps": pairs("usps", directory),
    }
    figure, panels = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    print("| group | problems | correlation of MSP with accuracy | without a split |\n|---|---|---|---|")
    for column, (group, problems) in enumerate(groups.items()):
        found = []
        for _, X, y in problems:
            # one lambda for the clusters and their measure; starts as the paper does
            model = MaximinSeparation(2, regularization=SCORE_REGULARIZATION, standardize=False)
            labels = model.fit(X).labels_
            if len(np.unique(labels)) == 2:
                msp = separation_probability(X, labels, regularization=SCORE_REGULARIZATION)
                found.append((msp, accuracy(y, labels)))
        points = np.array(found)
        r = float(np.corrcoef(points.T)[0, 1])
        print(f"| {group} | {len(points)} | {r:.3f} | {len(problems) - len(points)} |", flush=True)
        bars, dots = panels[0, column], panels[1, column]
        bars.bar(np.arange(len(points)), points[:, 1], color="lightgrey", label="accuracy")
        bars.plot(points[:, 0], "o", label="MSP")
        bars.set(title=group, ylim=(0, 1.02))
        dots.plot(points[:, 0], points[:, 1], "o")
        dots.set(title=f"correlation {r:.2f}", xlabel="MSP", ylabel="accuracy")
    panels[0, 0].legend(loc="lower left")
    figure.savefig(out / "separation_judge.png", dpi=110)


FIGURES = {"scaling": scaling, "judge": evaluate_projected}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=", ".join(FIGURES))
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--out", default=str(Path(__file__).parent / "results"), help="folder of the plots")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    import matplotlib

    matplotlib.use("Agg")
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    for name in arguments.figures or FIGURES:
        print(f"\n## {name}\n")
        FIGURES[name](arguments.data, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
