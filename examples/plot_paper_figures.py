"""
Figures of the papers
=====================

What a search sees, after the figures of Minimum Density Hyperplanes (Pavlidis, Hofmeyr, Tasoulis, 2016), on
two columns of generated rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from ravine import MinimumDensity
from ravine.view import plot

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(size=(150, 2)) * [3, 0.6], rng.normal(size=(150, 2)) * [3, 0.6] + [1, 3]])
model = MinimumDensity(n_clusters=2).fit(X)

# %%
# The density along the normal, its penalized form, and the interval in which the threshold may lie.

plot.density(model, X)

# %%
# The search: the density at the start, on top, and after each width of the interval.

plot.path(model, X)

# %%
# The lowest density of a hyperplane against the angle of its normal: the search descends this landscape.

plot.landscape(X, model)

# %%
# With falling bandwidth, minimum density hyperplanes approach the maximum margin hyperplane.

plot.convergence(X)
plt.show()
