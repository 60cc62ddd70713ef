"""
Handwritten digits
==================

Ten clusters of 1797 images of 8 x 8 pixels, which ship with scikit-learn. All pixels share a unit, so the
columns are not standardized.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from ravine import SpectralConnectivity
from ravine.metrics import v_measure

digits = load_digits()
model = SpectralConnectivity(n_clusters=10, standardize=False).fit(digits.data)
print(model.tree_)
print(f"V-measure against the digits: {v_measure(digits.target, model.labels_):.2f}")

# %%
# The mean image of every cluster, in the order of the leaves. Leaves that are close in the tree look alike.

figure, axes = plt.subplots(2, 5, figsize=(7, 3.2), layout="constrained")
for k, ax in enumerate(axes.flat):
    rows = digits.images[model.labels_ == k]
    ax.imshow(rows.mean(axis=0), cmap="Greys")
    ax.set_title(f"cluster {k}: {len(rows)}", fontsize=8)
    ax.axis("off")
