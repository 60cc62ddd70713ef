"""The judges of `ravine.select` by the graph of nearest neighbors, for any rows and labels."""

import numpy as np

from ravine._validate import check_rows, check_weights
from ravine.data.rows import rows_of
from ravine.data.threads import one_blas_thread
from ravine.features.neighbors import row_graph
from ravine.metrics import modularity_of, normalized_cut_of


def _edges(X, labels, sample_weight=None, **settings):
    X = check_rows(X)
    clusters = np.unique(labels, return_inverse=True)[1]
    with one_blas_thread():
        graph = row_graph(rows_of(X, check_weights(sample_weight, X.shape[0])), **settings)
    return graph.between(clusters[graph.numbers])


def modularity(X, labels, **settings):
    return modularity_of(_edges(X, labels, **settings))


def normalized_cut(X, labels, **settings):
    return normalized_cut_of(_edges(X, labels, **settings))
