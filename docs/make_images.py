"""The pictures of the README and of the site: python docs/make_images.py [--only NAME ...].

The drawings need matplotlib, the screenshots chromium and, for the explorer, the extra `explore`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import gaussian_kde
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.svm import LinearSVC

import ravine
from ravine.view import plot

mpl.use("Agg")

IMAGES = Path(__file__).parent / "images"
COLORS = ("#0072b2", "#d55e00", "#009e73")
FRAME = 143  # pixels that the frame of a headless window takes from its height
METHODS = {
    "minimum-density": (ravine.MinimumDensity, {}),
    "spectral-connectivity": (ravine.SpectralConnectivity, {}),
    "maximum-margin": (ravine.MaximumMargin, {}),
    "maximin-separation": (ravine.MaximinSeparation, {}),
    "principal-direction": (ravine.PrincipalDirection, {"threshold": "density"}),
}


def three_groups() -> Any:
    """Return 900 rows in three groups of different shape and spread, two of them long."""
    rng = np.random.default_rng(3)
    long = rng.normal(size=(400, 2)) * [2.4, 0.35] + [0, 2.6]
    longer = rng.normal(size=(300, 2)) * [2.4, 0.35] + [0.5, 0]
    round_ = rng.normal(size=(200, 2)) * [0.5, 0.5] + [10, 1.3]
    return np.vstack([long, longer, round_])


def rows_and_boundaries(ax: Any, model: Any, X: Any) -> None:
    """Draw the rows over their density, and every split in the region of the rows that it divides."""
    low, high = X.min(axis=0) - 0.6, X.max(axis=0) + 0.6
    coarse, fine = (np.stack(np.meshgrid(*np.linspace(low, high, n).T), axis=-1) for n in (150, 1200))
    shade = gaussian_kde(X.T, 0.17)(coarse.reshape(-1, 2).T).reshape(coarse.shape[:2])
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(np.sqrt(shade), origin="lower", extent=extent, aspect="auto", cmap="Greys", vmax=0.45)
    for k, color in enumerate(COLORS[: model.n_clusters_]):
        rows = X[model.labels_ == k]
        ax.scatter(*rows.T, s=5, c=color, alpha=0.55, linewidths=0, label=f"cluster {k}")
    found = model.predict(fine.reshape(-1, 2)).reshape(fine.shape[:2])
    for k in range(model.n_clusters_ - 1):  # a grid so fine that its steps are not seen
        above = (found > k).astype(float)
        ax.contour(fine[..., 0], fine[..., 1], above, [0.5], colors="#111", linewidths=1.4)
    ax.set(xticks=[], yticks=[])


def front() -> None:
    """The picture of the README: boundaries in the ravines, the density across one, and k-means beside it."""
    X = three_groups()
    model = ravine.MinimumDensity(n_clusters=3).fit(X)
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.1), layout="constrained")
    rows_and_boundaries(axes[0], model, X)
    axes[0].set_title("ravine: boundaries run through the gaps", fontsize=9)
    plot.density(model, X, ax=axes[1])
    for artist in [*axes[1].lines, *axes[1].patches, *axes[1].collections]:
        if artist.get_label() in ("penalized density", "feasible interval"):
            artist.remove()  # details of the search
    axes[1].set_title("the density of the rows across the first boundary", fontsize=9)
    axes[1].legend(fontsize=7)
    means = KMeans(3, n_init=10, random_state=0).fit_predict(X)
    for k, color in enumerate(COLORS):
        axes[2].scatter(*X[means == k].T, s=5, c=color, alpha=0.55, linewidths=0)
    axes[2].set(xticks=[], yticks=[])
    axes[2].set_title("k-means cuts through the long groups", fontsize=9)
    save(figure, "front")


def classifier() -> None:
    """The picture of the classifier: four labels, and the boundaries with and without the unlabeled rows."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = np.column_stack([rng.normal(0, 5, 400), rng.normal(0, 0.5, 400) + 4 * y])
    partial = np.where(np.arange(400) < 4, y, -1)
    models = {
        "MinimumDensityClassifier: all rows": ravine.MinimumDensityClassifier().fit(X, partial),
        "LinearSVC: the labeled rows only": LinearSVC(dual=False).fit(X[:4], y[:4]),
    }
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained", sharey=True)
    for ax, (title, model) in zip(axes, models.items(), strict=True):
        ax.scatter(*X.T, s=5, c="#999", linewidths=0)
        for k in (0, 1):
            ax.scatter(*X[:4][y[:4] == k].T, s=60, c=COLORS[k], marker="os"[k], edgecolors="#111")
        line = np.array(ax.get_xlim())
        (normal,) = np.atleast_2d(model.coef_)
        ax.plot(line, -(normal[0] * line + model.intercept_[0]) / normal[1], color="#111", linewidth=1.4)
        ax.set(xticks=[], yticks=[], xlim=line, ylim=(-2.5, 6.5))
        ax.set_title(title, fontsize=9)
    save(figure, "classifier")


def method(name: str) -> None:
    """The picture of a method: its three clusters of the same rows, and its first split."""
    X = three_groups()
    kind, parameters = METHODS[name]
    model = kind(n_clusters=3, **parameters).fit(X)
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained")
    rows_and_boundaries(axes[0], model, X)
    plot.split(model, X, ax=axes[1])
    axes[0].set_title(f"{kind.__name__}(n_clusters=3)", fontsize=9)
    axes[1].set(ylabel="", yticks=[])
    axes[1].set_title("across the first split", fontsize=9)
    axes[1].legend(fontsize=6)
    save(figure, name)


def decision() -> None:
    """The picture of the page "which method when": questions, and the answer to each."""
    questions = [
        ("a few rows have labels?", "MinimumDensityClassifier\nor fit(X, y)"),
        ("curved shapes?", 'kernel="rbf" (clean)\nkernel="diffusion" (real data)'),
        ("sparse text?", "MaximumMargin or MinimumDensity,\nstandardize=False"),
        ("clusters overlap?", "SpectralConnectivity"),
        ("a guarantee for new rows?", "MaximinSeparation"),
    ]
    figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    arrow = {"arrowstyle": "->", "color": "#555"}
    for i, (question, answer) in enumerate([*questions, ("otherwise", "MinimumDensity")]):
        box = {"boxstyle": "round,pad=0.4", "fc": "#eef3f8", "ec": "#7a93ad"}
        ax.text(0.2, -i, question, ha="center", va="center", fontsize=9, bbox=box)
        ax.text(
            0.75,
            -i,
            answer,
            ha="center",
            va="center",
            fontsize=9,
            family="monospace",
            bbox=box | {"fc": "#fff"},
        )
        ax.annotate("", (0.5, -i), (0.36, -i), arrowprops=arrow)
        ax.text(0.43, 0.08 - i, "yes" if i < len(questions) else "", ha="center", fontsize=8, color="#555")
        if i < len(questions):
            ax.annotate("", (0.2, -i - 0.72), (0.2, -i - 0.28), arrowprops=arrow)
            ax.text(0.215, -i - 0.55, "no", fontsize=8, color="#555")
    ax.set(xlim=(0, 1), ylim=(-len(questions) - 0.5, 0.5))
    ax.axis("off")
    save(figure, "decision")


def save(figure: Any, name: str) -> None:
    """Write a figure as a PNG of 110 dots per inch."""
    figure.savefig(IMAGES / f"{name}.png", dpi=110)
    plt.close(figure)


def report() -> None:
    """A screenshot of the report about wine."""
    wine = load_wine(as_frame=True)
    model = ravine.MinimumDensity(n_clusters=3).fit(wine.data)
    with tempfile.TemporaryDirectory() as folder:
        page = ravine.report(model, wine.data, title="Wine")
        (Path(folder) / "wine.html").write_text(page, encoding="utf-8")
        screenshot(f"file://{folder}/wine.html", "report")


def explorer() -> None:
    """A screenshot of `ravine explore` on wine."""
    wine = load_wine(as_frame=True)
    model = ravine.MinimumDensity(n_clusters=3).fit(wine.data)
    with tempfile.TemporaryDirectory() as folder:
        running = ravine.explore(model, wine.data, session=Path(folder) / "wine", open_browser=False)
        try:
            screenshot(running.address, "explorer", (1400, 900))
        finally:
            running.stop()


def terminal() -> None:
    """The output of `ravine fit` on wine, drawn as a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        load_wine(as_frame=True).data.round(3).to_csv(Path(folder) / "wine.csv", index=False)
        typed = ["fit", "wine.csv", "--clusters", "3", "--out", "labels.csv", "--report", "wine.html"]
        run = [sys.executable, "-m", "ravine", *typed]
        done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
        text = "\n".join([" ".join(["$ ravine", *typed]), done.stderr.strip(), done.stdout.strip()])
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        page = Path(folder) / "page.html"
        page.write_text(
            "<meta charset=utf-8><body style='margin:0;background:#14181d;color:#e6edf3'>"
            f"<pre style='font:14px/1.5 DejaVu Sans Mono,monospace;padding:18px'>{escaped}</pre>"
        )
        screenshot(f"file://{page}", "terminal", (1010, 40 + 21 * len(text.splitlines())))


def screenshot(address: str, name: str, size: tuple[int, int] = (1280, 757)) -> None:
    """Write what chromium shows of an address."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for option in (
        "headless=new",
        "no-sandbox",
        "hide-scrollbars",
        f"window-size={size[0]},{size[1] + FRAME}",
    ):
        options.add_argument(f"--{option}")
    with webdriver.Chrome(options=options) as driver:
        driver.get(address)
        time.sleep(2)
        driver.save_screenshot(str(IMAGES / f"{name}.png"))


def main() -> None:
    """Make all pictures, or those that are named."""
    makers = {"front": front, "report": report, "explorer": explorer, "terminal": terminal}
    makers |= {"decision": decision, "classifier": classifier}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[*makers, *METHODS])
    for name in parser.parse_args().only or [*makers, *METHODS]:
        if name in METHODS:
            method(name)
        else:
            makers[name]()


if __name__ == "__main__":
    main()
