"""
Strings by a kernel
===================

A kernel is a function that compares two objects, here two words by the pairs of letters that they share; the
objects need no columns. The data are ten words of each of two made-up languages, in copies with one letter
missing.
"""

import matplotlib.pyplot as plt
import numpy as np

from ravine import MinimumDensity

rng = np.random.default_rng(0)
roots = [
    "karaki takari rikata kirata tarika rakita katiri tikara rikaki takiki",
    "solemon mosolen nelomos lenosom somelon monesol elosmon nosolem lomesen soneloms",
]
languages = [line.split() for line in roots]
words = [root[:i] + root[i + 1 :] for language in languages for root in language for i in range(len(root))]
truth = np.repeat([0, 1], [sum(map(len, language)) for language in languages])


def pairs(words: np.ndarray) -> list[set[str]]:
    """Return the pairs of neighboring letters of each word."""
    return [{word[i : i + 2] for i in range(len(word) - 1)} for word in words]


def shared_pairs(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the share of pairs of letters that two words have in common (cosine of their sets)."""
    return np.array([[len(a & b) / np.sqrt(len(a) * len(b)) for b in pairs(B)] for a in pairs(A)])


model = MinimumDensity(n_clusters=2, kernel=shared_pairs).fit(words)
agree = (model.labels_ == truth).mean()
print(f"{max(agree, 1 - agree):.0%} of the words are with their language")
print("new words:", model.predict(["takira", "molesos"]))

# %%
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for k in (0, 1):
    ax.hist(model.decision_function(words)[truth == k], bins=25, alpha=0.6, label=f"language {k}")
ax.set_xlabel("signed distance to the boundary, in the feature space of the kernel")
ax.legend()
