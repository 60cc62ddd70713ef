"""The test of splits of mapped rows: the depth of a boundary in the neighbor graph."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons

from ravine import MinimumDensity, SpectralConnectivity
from ravine.data.memory import MemoryRows
from ravine.evidence.graph_test import BAND_MEAN, GraphTest, evidence, graph_depth
from ravine.features.neighbors import row_graph


def grid(width: int, height: int, gone=()):
    """Return the graph of a grid, column by column, without some of its edges between neighbor columns."""
    path = [sparse.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n)) for n in (width, height)]
    joined = sparse.kron(path[0], sparse.eye_array(height)) + sparse.kron(sparse.eye_array(width), path[1])
    joined = sparse.lil_array(joined + joined.T)
    for a, b in gone:
        joined[a, b] = joined[b, a] = 0.0
    return sparse.csr_array(joined)


def test_a_cut_across_a_uniform_shape_has_depth_zero():
    for width in (10, 30, 100):
        right = np.repeat(np.arange(width) >= width // 2, 4)
        assert graph_depth(grid(width, 4), np.ones(4 * width), right) == 0.0


def test_the_depth_is_the_log_of_the_ratio_of_edges():
    """All but one of the four edges between two columns are gone."""
    gone = [(4 * 9 + k, 4 * 10 + k) for k in range(3)]
    near, right = grid(20, 4, gone), np.repeat(np.arange(20) >= 10, 4)
    # layers around the one edge that is left: the front grows by the columns' own edges
    depth = graph_depth(near, np.ones(80), right)
    assert depth > np.log(2.0)
    assert graph_depth(near, np.full(80, 3.0), right) == pytest.approx(depth)
    assert graph_depth(near, np.ones(80), ~right) == pytest.approx(depth)


def test_an_empty_gap_is_the_deepest_and_a_single_stray_row_does_not_fill_it():
    gone = [(4 * 9 + k, 4 * 10 + k) for k in range(4)]
    near, right = grid(20, 4, gone), np.repeat(np.arange(20) >= 10, 4)
    assert graph_depth(near, np.ones(80), right) == 36.0
    right[13] = True
    assert graph_depth(near, np.ones(80), right) == 36.0


def test_no_rows_on_one_side_are_no_evidence():
    assert graph_depth(grid(6, 4), np.ones(24), np.zeros(24, dtype=bool)) == 0.0


def test_layers_end_at_the_reach_of_the_boundary():
    """A part of the graph that no path from the boundary reaches has no layers."""
    apart = sparse.block_diag([grid(10, 4), grid(5, 4)], format="csr")
    right = np.concatenate([np.repeat(np.arange(10) >= 5, 4), np.zeros(20, dtype=bool)])
    assert graph_depth(apart, np.ones(60), right) == 0.0


def test_copies_and_weights_are_the_same():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + [4.0, 0.0]])
    weights = rng.integers(1, 4, 120)
    method = MinimumDensity()._method()

    def depth(rows, row_weight):
        graph = row_graph(MemoryRows(rows, row_weight), standardize=False)
        return GraphTest(method, 0.01, graph).depth(np.arange(len(rows)), rows[:, 0] > 2.0)

    copies = np.repeat(X, weights, axis=0)
    assert depth(X, weights.astype(float)) == pytest.approx(depth(copies, None))


def test_the_p_value_falls_with_the_depth_and_with_the_number_of_rows():
    p_values = [evidence(BAND_MEAN + z * 0.6, 100).p_value for z in (-40, 0, 1, 2.326, 60)]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[3] == pytest.approx(0.01, rel=1e-2)
    assert p_values[0] == 1.0
    assert p_values[-1] == 0.0
    fewer, more, many, most = (evidence(2.0, n).p_value for n in (50, 400, 900, 10**6))
    assert fewer > more > many == most


@pytest.mark.parametrize("kernel", ["diffusion", "rbf"])
def test_two_moons_are_two_clusters_and_a_blob_is_one(kernel):
    X, y = make_moons(300, noise=0.05, random_state=0)
    model = MinimumDensity("auto", kernel=kernel).fit(X)
    assert model.n_clusters_ == 2
    assert max((model.labels_ == y).mean(), (model.labels_ != y).mean()) > 0.99
    blob = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(UserWarning, match="one cluster"):
        assert MinimumDensity("auto", kernel=kernel).fit(blob).n_clusters_ == 1


def test_a_kernel_of_a_function_is_tested_in_its_feature_space():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 12.0])
    model = MinimumDensity("auto", kernel=lambda a, b: np.asarray(a) @ np.asarray(b).T).fit(X)
    assert model.n_clusters_ == 2


def test_a_component_in_which_all_rows_agree_ends_no_search():
    """Two groups of 20 rows far apart: the diffusion map has components that are 0 everywhere."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 8.0])
    for n_clusters in (2, "auto"):
        assert SpectralConnectivity(n_clusters, kernel="diffusion").fit(X).n_clusters_ == 2


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_boundary_is_compared_with_the_thinner_side(mirrored):
    """A thread of rows beside layers of four rows: it is as thin everywhere, so its end is no valley."""
    layers = [[i] for i in range(11)] + [list(range(a, a + 4)) for a in range(11, 31, 4)]
    near = np.zeros((31, 31))
    for one, two in itertools.pairwise(layers):
        near[np.ix_(one, two)] = near[np.ix_(two, one)] = 1.0
    right = np.arange(31) >= 10
    found = graph_depth(sparse.csr_array(near), np.ones(31), ~right if mirrored else right)
    assert found == 0.0
