"""
Which method, without labels?
=============================

Rank all methods on the same rows without labels, then compare the ranking with the true groups, which it has
not seen.
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
ax.set_xlabel("V-measure against the kinds of wine (best by the ranking on top)")
