"""
Segment an image by its pixels
==============================

Every pixel is a row with three color values. The photograph ships with scikit-learn. The model is fitted to
every fourth pixel in both directions, and then predicts the cluster of every pixel.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from ravine import SpectralConnectivity

image = load_sample_image("flower.jpg") / 255
model = SpectralConnectivity(n_clusters=4).fit(image[::4, ::4].reshape(-1, 3))
print(model.tree_)

# %%
pixels = image.reshape(-1, 3)
labels = model.predict(pixels)
means = np.array([pixels[labels == k].mean(axis=0) for k in range(model.n_clusters_)])
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
axes[0].imshow(image)
axes[1].imshow(means[labels].reshape(image.shape))
for ax, title in zip(axes, ("image", f"{model.n_clusters_} clusters of colors"), strict=True):
    ax.set_title(title)
    ax.axis("off")
