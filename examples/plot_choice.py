"""
Which method, without labels?
=============================

All methods on the same rows, ranked without labels; then how good they are against the true groups, which
the ranking has not seen.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import ravine
from ravine.metrics import v_measure

X, truth = load_wine(return_X_y=True)
found = ravine.compare(X, n_clusters=3)
print(found)

# %%
candidates = found.candidates
names = [candidate.name for candidate in candidates]
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(names, [v_measure(truth, candidate.estimator.labels_) for candidate in candidates], color="#0072b2")
ax.invert_yaxis()
ax.set_xlabel("V-measure against the three kinds of wine; the best by the ranking is on top")
