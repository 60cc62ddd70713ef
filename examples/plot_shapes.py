"""
Moons, rings and spirals
========================

No straight line separates these shapes. ``kernel="rbf"`` maps the rows to a space in which a hyperplane
separates them; in the plane its boundary is curved.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons

from ravine import MinimumDensity
from ravine.metrics import v_measure


def spirals(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points on two spirals, and the spiral of each point."""
    rng = np.random.default_rng(0)
    angle = np.pi * (0.5 + 2.5 * np.sqrt(rng.random(n // 2)))
    arm = angle[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([arm, -arm]) + 0.1 * rng.normal(size=(n, 2)), np.repeat([0, 1], n // 2)


shapes = {
    "moons": make_moons(400, noise=0.06, random_state=0),
    "rings": make_circles(400, noise=0.05, factor=0.4, random_state=0),
    "spirals": spirals(600),
}
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, (name, (X, truth)) in zip(axes, shapes.items(), strict=True):
    model = MinimumDensity(n_clusters=2, kernel="rbf").fit(X)
    low, high = X.min(axis=0), X.max(axis=0)
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 120).T), axis=-1)
    sides = model.decision_function(grid.reshape(-1, 2)).reshape(120, 120)
    ax.contour(grid[..., 0], grid[..., 1], sides, [0], colors="black", linewidths=1)
    ax.scatter(*X.T, c=model.labels_, s=6, cmap="coolwarm")
    ax.set(title=f"{name}: V-measure {v_measure(truth, model.labels_):.2f}", xticks=[], yticks=[])
