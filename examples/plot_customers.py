"""
A customer table with sentinels
===============================

A table with three segments of customers, an id, a long-tailed amount, a two-valued column, and a few ages of
9999, which mean "unknown". This is what to do with each of them before clustering.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ravine import MinimumDensity
from ravine.metrics import v_measure

rng = np.random.default_rng(0)
segment = rng.integers(3, size=900)
table = pd.DataFrame(
    {
        "customer": np.arange(900),
        "age": np.array([25, 45, 68])[segment] + rng.normal(0, 3, 900),
        "spent": np.exp(np.array([3.0, 6.0, 4.5])[segment] + rng.normal(0, 0.5, 900)),
        "visits": np.array([20, 4, 10])[segment] + rng.poisson(2, 900),
        "member": rng.integers(2, size=900),
    }
)
table.loc[[7, 300], "age"] = 9999

# %%
# Leave out the id, which measures nothing, and the two-valued column, whose gap would become a split. Take
# the logarithm of the amount. The two sentinels are far from all other rows: they are left out of the
# searches, and with ``outliers="label"`` they get the label -1.

columns = table[["age", "visits"]].assign(log_spent=np.log(table["spent"]))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the warning names the rows far from all others
    model = MinimumDensity(n_clusters=3, outliers="label").fit(columns)
print("rows far from all others:", model.outliers_.tolist())
print(f"V-measure against the segments: {v_measure(segment, model.labels_):.2f}")
print(table.assign(cluster=model.labels_).groupby("cluster").mean().round(1))

# %%
figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
near = model.labels_ >= 0
ax.scatter(columns["age"][near], columns["log_spent"][near], c=model.labels_[near], s=8, cmap="viridis")
ax.set(xlabel="age", ylabel="log of the amount spent")
