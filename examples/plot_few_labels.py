"""
Ten labels
==========

Of the 569 rows of the breast cancer data, only ten have a label. A support vector machine uses these ten rows
only; the classifier of ravine also uses the unlabeled rows if they show a clear gap. That helps a little
here; "Partial labels" in the guide shows when it helps much, and when it hurts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ravine import MinimumDensityClassifier

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)  # for the support vector machine; ravine standardizes by itself


def errors(seed: int) -> tuple[float, float]:
    """Return the errors of both classifiers on the unlabeled rows, for one draw of five labels per class."""
    rng = np.random.default_rng(seed)
    known = np.concatenate([rng.choice(np.flatnonzero(y == k), 5, replace=False) for k in (0, 1)])
    partial = np.full(len(y), -1)
    partial[known] = y[known]
    unknown = partial < 0
    ours = MinimumDensityClassifier().fit(X, partial)
    theirs = LinearSVC(dual=False).fit(X[known], y[known])
    found = [(model.predict(X)[unknown] != y[unknown]).mean() for model in (ours, theirs)]
    return found[0], found[1]


found = 100 * np.array([errors(seed) for seed in range(20)])
print("median error in percent: with unlabeled rows {:.1f}, without {:.1f}".format(*np.median(found, axis=0)))

# %%
figure, ax = plt.subplots(figsize=(4, 3.4), layout="constrained")
ax.boxplot(found)
ax.set_xticks([1, 2], ["MinimumDensityClassifier", "LinearSVC"])
ax.set_ylabel("error on unlabeled rows (%)")
