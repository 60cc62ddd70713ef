"""The papers' data sets: from a directory of npz files, or from OpenML through scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]

# name here -> (name on OpenML, version)
OPENML = {
    "australian": ("Australian", 4),
    "banknote": ("banknote-authentication", 1),
    "breast_w": ("breast-w", 1),
    "control_chart": ("synthetic_control", 1),
    "dermatology": ("dermatology", 1),
    "forest": ("ForestTypeMapping", 1),
    "ionosphere": ("ionosphere", 1),
    "letter": ("letter", 1),
    "mfeat_fac": ("mfeat-factors", 1),
    "mnist": ("mnist_784", 1),
    "optdigits": ("optdigits", 1),
    "pendigits": ("pendigits", 1),
    "pima": ("diabetes", 1),
    "satellite": ("satimage", 1),
    "seeds": ("seeds", 1),
    "segment": ("segment", 1),
    "spambase": ("spambase", 1),
    "usps": ("USPS", 2),
    "voting": ("vote", 1),
    "wine": ("wine", 1),
    "yeast_cc": ("yeast-cell-cycle", 1),
}

# two classes of a set, by their rank among its classes
PAIRS = {
    "letter_ab": ("letter", 0, 1),
    "satellite_1_2": ("satellite", 0, 1),
    "text_1": ("news_rec", 0, 1),
    "text_2": ("news_rec", 2, 3),
}


def load(name: str, directory: str | None = None) -> tuple[Any, Array]:
    """Return (X, y) of a data set, from `directory` if one is given; text is a CSR matrix."""
    if name == "digits":
        from sklearn.datasets import load_digits

        return load_digits(return_X_y=True)  # type: ignore[no-any-return]
    if directory is not None:
        with np.load(Path(directory) / f"{name}.npz", allow_pickle=False) as stored:
            y = stored["y"].astype(np.int64)
            if "indptr" not in stored:
                return stored["X"].astype(np.float64), y
            parts = stored["data"].astype(np.float64), stored["indices"], stored["indptr"]
            return sparse.csr_matrix(parts, shape=tuple(stored["shape"])), y
    if name not in OPENML:
        raise KeyError(f"{name} is not on OpenML: give its directory with --data")
    return from_openml(*OPENML[name])


def of_classes(X: Array, y: Array, classes: Sequence[int]) -> tuple[Array, Array]:
    """Return the rows of some classes."""
    keep = np.isin(y, classes)
    return X[keep], y[keep]


def pair(X: Any, y: Array, a: int, b: int) -> tuple[Any, Array]:
    """Return the rows of two classes, given by their rank among the classes, with labels 0 and 1."""
    classes = np.unique(y)
    X, y = of_classes(X, y, [classes[a], classes[b]])
    return X, (y == classes[b]).astype(np.int64)


def problem(name: str, directory: str | None = None) -> tuple[Array, Array]:
    """Return (X, y) of one of the ten two-class problems of Maximin Separation Probability Clustering.

    Columns are scaled to [-1, 1], those of MNIST to [0, 1].
    """
    if name == "breast_w_683":  # the rows without missing values
        X, y = load("breast_w", directory)
        if directory is not None:
            with np.load(Path(directory) / "breast_w.npz") as stored:
                keep = np.setdiff1d(np.arange(len(y)), stored["missing_rows"])
            X, y = X[keep], y[keep]
    elif name in PAIRS:
        base, a, b = PAIRS[name]
        X, y = pair(*load(base, directory), a, b)
    elif name.startswith("mnist"):
        X, y = load("mnist", directory)
        X, y = of_classes(X, y, [int(digit) for digit in name.split("_")[1:]])
        return X / 255.0, y
    else:
        X, y = load(name, directory)
    return scaled(X), y


def scaled(X: Array) -> Array:
    """Return the columns that vary, scaled to [-1, 1]."""
    low, high = X.min(axis=0), X.max(axis=0)
    varies = high > low
    return np.asarray(2 * (X - low)[:, varies] / (high - low)[varies] - 1)


def from_openml(name: str, version: int) -> tuple[Array, Array]:
    """Fetch a data set: categories become codes, missing values the column's median."""
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(name, version=version, as_frame=True, parser="auto")
    columns = []
    for column in bunch.data.columns:
        series = bunch.data[column]
        if series.dtype.kind not in "iuf":
            codes = series.astype("category").cat.codes.to_numpy().astype(float)
            series = np.where(codes < 0, np.nan, codes)
        values = np.asarray(series, dtype=np.float64)
        columns.append(np.where(np.isnan(values), np.nanmedian(values), values))
    return np.column_stack(columns), np.unique(np.asarray(bunch.target), return_inverse=True)[1]
