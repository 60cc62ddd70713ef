"""The papers' data sets: from a directory of npz files, or from OpenML through scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

# name here -> (name on OpenML, version)
OPENML = {
    "banknote": ("banknote-authentication", 1),
    "breast_w": ("breast-w", 1),
    "control_chart": ("synthetic_control", 1),
    "dermatology": ("dermatology", 1),
    "forest": ("ForestTypeMapping", 1),
    "ionosphere": ("ionosphere", 1),
    "mfeat_fac": ("mfeat-factors", 1),
    "optdigits": ("optdigits", 1),
    "pendigits": ("pendigits", 1),
    "satellite": ("satimage", 1),
    "seeds": ("seeds", 1),
    "segment": ("segment", 1),
    "voting": ("vote", 1),
    "wine": ("wine", 1),
    "yeast_cc": ("yeast-cell-cycle", 1),
}


def load(name: str, directory: str | None = None) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return (X, y) of a data set, from `directory` if one is given."""
    if directory is not None:
        with np.load(Path(directory) / f"{name}.npz", allow_pickle=False) as stored:
            return stored["X"].astype(np.float64), stored["y"].astype(np.int64)
    if name not in OPENML:
        raise KeyError(f"{name} is not on OpenML: give its directory with --data")
    return from_openml(*OPENML[name])


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
