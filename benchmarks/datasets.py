"""The papers' data sets: from a directory of npz files, or from OpenML through scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

# name here -> (name on OpenML, version)
OPENML = {
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
    "satellite": ("satimage", 1),
    "seeds": ("seeds", 1),
    "segment": ("segment", 1),
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


def load(name: str, directory: str | None = None) -> tuple[Any, np.ndarray[Any, Any]]:
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


def pair(X: Any, y: np.ndarray[Any, Any], a: int, b: int) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return the rows of two classes, given by their rank among the classes, with labels 0 and 1."""
    classes = np.unique(y)
    chosen = (y == classes[a]) | (y == classes[b])
    return X[chosen], (y[chosen] == classes[b]).astype(np.int64)


def from_openml(name: str, version: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
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
