"""
Time series
===========

600 control charts of 60 values each, which are stationary, cyclic, rising, falling, or jump up or down. Each
row is a series. The diffusion map compares a series with its nearest neighbors, so that clusters may be
curved, as those of shifted and stretched series are.
"""

import matplotlib.pyplot as plt
import numpy as np

from ravine import SpectralConnectivity
from ravine.metrics import v_measure

rng = np.random.default_rng(0)
time = np.arange(60)
kind = np.repeat(np.arange(6), 100)


def series(kind: int) -> np.ndarray:
    """Return one series of the given kind."""
    noise = rng.normal(0, 2, 60)
    jump = time >= rng.integers(20, 40)
    size = rng.uniform(10, 20)
    shapes = [0 * time, 12 * np.sin(2 * np.pi * time / rng.uniform(10, 15)), 0.4 * time, -0.4 * time]
    shapes += [size * jump, -size * jump]
    return 30 + noise + shapes[kind]


X = np.array([series(k) for k in kind])
model = SpectralConnectivity(n_clusters=6, kernel="diffusion", standardize=False).fit(X)
print(f"V-measure against the kinds: {v_measure(kind, model.labels_):.2f}")

# %%
figure, axes = plt.subplots(2, 3, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
for k, ax in enumerate(axes.flat):
    ax.plot(X[model.labels_ == k][:15].T, color="#0072b2", alpha=0.3, linewidth=0.7)
    ax.set_title(f"cluster {k}: {(model.labels_ == k).sum()} series", fontsize=8)
