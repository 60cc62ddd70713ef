"""
A file larger than memory
=========================

The rows stay in their file and are read in blocks. Here a file of 200 000 x 10 values stands for one of any
size. Parquet and Arrow files work in the same way (``pip install "ravine[io]"``).
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ravine

rng = np.random.default_rng(0)
path = Path(tempfile.mkdtemp()) / "rows.npy"
rows = np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(200_000, 10))
for start in range(0, len(rows), 20_000):
    group = rng.integers(4, size=20_000)
    rows[start : start + 20_000] = rng.normal(size=(20_000, 10)) + 5 * np.eye(4, 10)[group]
rows.flush()

model = ravine.MinimumDensity(n_clusters=4).fit(ravine.open(path))
print(model.tree_)
print(f"{path.stat().st_size / 1e6:.0f} MB, read {model.n_passes_:.1f} times")

# %%
figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
some = slice(None, None, 100)
ax.scatter(rows[some, 0], rows[some, 1], c=model.labels_[some], s=5, cmap="viridis")
ax.set(xlabel="column 0", ylabel="column 1")
