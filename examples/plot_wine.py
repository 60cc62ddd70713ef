"""
Wine: named columns, explanation, report
========================================

178 wines with 13 measurements each. Which columns define the clusters, and by how much, in their own units?
"""

import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

import ravine
from ravine.view import plot

wine = load_wine(as_frame=True).data
model = ravine.MinimumDensity(n_clusters=3).fit(wine)
print(ravine.explain(model, wine).words())

# %%
# The tree: wide nodes have many rows, tall splits a deep valley of the density.

plot.tree(model).figure.set_size_inches(8, 5)

# %%
# The density across the first split. The blue line is the threshold.

plot.density(model, wine)

# %%
# The report is one HTML page that works offline.

page = ravine.report(model, wine, title="Wine")
path = Path(tempfile.mkdtemp()) / "wine.html"
path.write_text(page, encoding="utf-8")
print(f"{len(page) / 1000:.0f} kB")
