"""
Figures of the papers
=====================

How a search works, in the style of the figures of Minimum Density Hyperplanes (Pavlidis, Hofmeyr, Tasoulis,
2016), on generated rows with two columns.
"""

import matplotlib.pyplot as plt
import numpy as np

from ravine import MinimumDensity
from ravine.view import plot

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(size=(150, 2)) * [3, 0.6], rng.normal(size=(150, 2)) * [3, 0.6] + [1, 3]])
model = MinimumDensity(n_clusters=2).fit(X)

# %%
# The density along the normal, the penalized density, and the interval in which the threshold may lie.

plot.density(model, X)

# %%
# The search: the density at the start (on top), and after each step, in which the interval grows.

plot.path(model, X)

# %%
# The lowest density on a hyperplane against the angle of its normal: the search descends in this landscape.

plot.landscape(X, model)

# %%
# As the bandwidth falls, minimum density hyperplanes approach the maximum margin hyperplane.

plot.convergence(X)
plt.show()
