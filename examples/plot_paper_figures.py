"""
Figures of the papers
=====================

How a search works, in the style of the figures of Minimum Density Hyperplanes (Pavlidis, Hofmeyr, Tasoulis,
2016), on generated rows with two columns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from ravine import MinimumDensity
from ravine.view import plot

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(size=(150, 2)) * [3, 0.6], rng.normal(size=(150, 2)) * [3, 0.6] + [1, 3]])
X /= X.std(axis=0)  # so that columns and standard deviations have the same unit
model = MinimumDensity(n_clusters=2).fit(X)

# %%
# The density along the normal, the penalized density, and the interval in which the threshold may lie.

plot.density(model, X)

# %%
# The lowest density on a hyperplane against the angle of its normal: the search descends in this landscape.

split = model.tree_.splits[0]
bandwidth, alpha = split.facts["bandwidth"], split.facts["alpha"]
angles, lowest = np.linspace(0, np.pi, 181), []
for angle in angles:
    points = (X - X.mean(axis=0)) @ [np.cos(angle), np.sin(angle)]
    thresholds = np.linspace(-alpha, alpha, 200) * points.std()
    distances = (thresholds[:, None] - points) / bandwidth
    lowest.append(np.exp(-0.5 * distances**2).mean(axis=1).min() / (bandwidth * np.sqrt(2 * np.pi)))
figure, ax = plt.subplots()
ax.plot(angles, lowest, color="0.1", label="lowest density")
ax.axvline(np.arctan2(*split.direction[::-1]) % np.pi, linewidth=2, label="the split that was found")
ax.set(xlabel="angle of the normal", ylabel="density on the best hyperplane", ylim=(0, None))
ax.legend()

# %%
# As the bandwidth falls, minimum density hyperplanes approach the maximum margin hyperplane (Theorem 5).

figure, ax = plt.subplots()
ax.scatter(*X.T, c=model.labels_, s=10)
ax.autoscale(False)
for factor, gray in zip((1.0, 0.5, 0.25, 0.1, 0.05), ("0.8", "0.65", "0.5", "0.35", "0.2"), strict=True):
    found = MinimumDensity(2, bandwidth_factor=factor, max_iter=60).fit(X)
    boundary = found.tree_.splits[0].boundary
    on_line = -boundary.intercept * boundary.normal / (boundary.normal @ boundary.normal)
    along = [-boundary.normal[1], boundary.normal[0]]
    ax.axline(on_line, on_line + along, color=gray, label=f"bandwidth factor {factor:g}")
margin = SVC(kernel="linear", C=1e6).fit(X, found.labels_)  # a large C leaves no row in the margin
(normal,) = margin.coef_
on_line = -margin.intercept_[0] * normal / (normal @ normal)
ax.axline(on_line, on_line + [-normal[1], normal[0]], color="C1", linestyle="--", label="maximum margin")
ax.legend()
plt.show()
