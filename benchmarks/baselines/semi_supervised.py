"""Classifiers of scikit-learn as baselines: rows and partial labels (-1: none) to the class of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

Array = np.ndarray[Any, Any]


def supervised_svm(X: Array, y: Array) -> Array:
    """A linear support vector machine on the labeled rows only."""
    known = y != -1
    return np.asarray(SVC(kernel="linear").fit(X[known], y[known]).predict(X))


def self_training(X: Array, y: Array) -> Array:
    """Self-training of a logistic regression: its sure predictions become labels, round by round.

    Yarowsky: Unsupervised word sense disambiguation rivaling supervised methods. ACL, 1995.
    """
    return np.asarray(SelfTrainingClassifier(LogisticRegression(max_iter=300)).fit(X, y).predict(X))


def label_spreading(X: Array, y: Array) -> Array:
    """Label spreading over nearest neighbors.

    Zhou, Bousquet, Lal, Weston, Schoelkopf: Learning with local and global consistency. NIPS, 2003.
    """
    return np.asarray(LabelSpreading(kernel="knn", n_neighbors=10).fit(X, y).predict(X))
