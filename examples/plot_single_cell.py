"""
Single-cell counts
==================

Counts of 200 genes in 1000 cells of four types, generated to resemble single-cell sequencing: negative
binomial, mostly zeros, with a different total in every cell. As usual, the counts are divided by the total of
the cell, log-transformed, and reduced to principal components. The significance test finds the number of
clusters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from ravine import MinimumDensity
from ravine.metrics import v_measure

rng = np.random.default_rng(1)
kind = rng.choice(4, 1000, p=[0.4, 0.3, 0.2, 0.1])
means = rng.gamma(0.5, 1.0, 200) * np.exp(rng.normal(0, 1.2, (4, 200)) * (rng.random((4, 200)) < 0.2))
depth = rng.lognormal(0, 0.4, 1000)
rate = means[kind] * depth[:, None]
counts = rng.negative_binomial(2, 2 / (2 + rate))
print(f"{(counts == 0).mean():.0%} zeros")

log = np.log1p(counts / counts.sum(axis=1, keepdims=True) * np.median(counts.sum(axis=1)))
components = PCA(10, random_state=0).fit_transform(log)
model = MinimumDensity(n_clusters="auto", standardize=False).fit(components)
print(model.tree_)
print(f"V-measure against the types: {v_measure(kind, model.labels_):.2f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for ax, colors, title in zip(axes, (kind, model.labels_), ("types", "clusters"), strict=True):
    ax.scatter(*components[:, :2].T, c=colors, s=6, cmap="tab10", vmax=9)
    ax.set(title=title, xlabel="component 1", ylabel="component 2")
