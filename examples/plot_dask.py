"""
Dask on a cluster
=================

A Dask array is fitted where its chunks are: only summaries travel to the client, and the labels are lazy.
Here the cluster consists of threads in this process; for a real one, pass its address to ``Client``. You need
``pip install "ravine[dask]"``.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from ravine import MinimumDensity

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=60_000)
    X = rng.normal(size=(60_000, 8)) + 6 * np.eye(3, 8)[group]
    rows = da.from_array(X, chunks=(10_000, 8))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        model = MinimumDensity(n_clusters=3).fit(rows)
        labels = model.labels_.compute()
    print(model.tree_)
    print(
        "same labels as in memory:",
        bool((MinimumDensity(n_clusters=3).fit(X).predict(X) == labels).mean() > 0.99),
    )

    figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
    ax.scatter(X[::20, 0], X[::20, 1], c=labels[::20], s=5, cmap="viridis")
    ax.set(xlabel="column 0", ylabel="column 1")
