"""
Text by tf-idf
==============

900 short documents about three subjects, generated from overlapping vocabularies, as a sparse matrix. tf-idf
has already weighted the words, so the columns are not standardized.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from ravine import MaximumMargin
from ravine.metrics import v_measure

rng = np.random.default_rng(0)
subjects = {
    "kitchen": "boil fry oil salt pepper rice pasta onion sauce oven recipe taste garlic butter",
    "travel": "train flight hotel ticket station airport passport luggage city map border visa",
    "garden": "seed soil water rose tree prune compost shade bloom weed leaf root spade",
}
common = "day time people make good new long small find place morning easy need best"
truth = rng.integers(3, size=900)
vocabularies = [words.split() for words in subjects.values()]


def document(subject: int) -> str:
    """Return 5 to 14 words of a subject among as many common ones."""
    own, others = rng.integers(5, 15, 2)
    return " ".join([*rng.choice(vocabularies[subject], own), *rng.choice(common.split(), others)])


documents = [document(subject) for subject in truth]
vectorizer = TfidfVectorizer()
X = vectorizer.fit_transform(documents)
model = MaximumMargin(n_clusters=3, standardize=False).fit(X)
print(f"{X.shape[0]} x {X.shape[1]} sparse, V-measure {v_measure(truth, model.labels_):.2f}")

# %%
# The words that drive each of the two splits. Words with a negative weight pull a document to the left side,
# those with a positive weight to the right.

words = vectorizer.get_feature_names_out()
splits = [split for split in model.tree_.splits if split is not None]
figure, axes = plt.subplots(1, len(splits), figsize=(8, 3.4), layout="constrained")
for ax, split in zip(axes, splits, strict=True):
    normal = split.boundary.normal
    strongest = np.argsort(normal)[np.r_[:6, -6:0]]
    ax.barh(words[strongest], normal[strongest], color=np.where(normal[strongest] > 0, "#d55e00", "#0072b2"))
    ax.set_xlabel("weight of the word")
