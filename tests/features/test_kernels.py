"""Clusterers with a kernel: what no hyperplane of the rows does, and what must hold all the same."""

import pickle

import numpy as np
import pandas as pd
import pytest
from benchmarks.generators import spirals
from scipy import sparse
from sklearn.datasets import load_iris, load_wine, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import ravine
from ravine import (
    InvalidInputError,
    InvalidModelError,
    MinimumDensity,
    RavineError,
    SpectralConnectivity,
    metrics,
)
from ravine.features import kernel_map as maps
from ravine.store.archive import read_archive, write_archive
from tests.changed_method import with_method
from tests.every_estimator import ESTIMATORS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
WINE, CLASSES = load_wine(return_X_y=True)
IRIS = load_iris().data
PLAIN = {name: make for name, make in ESTIMATORS.items() if isinstance(make, type)}


def random_words(rng, letters, n):
    return ["".join(rng.choice(list(letters), rng.integers(5, 12))) for _ in range(n)]


def letter_kernel(A, B):
    """The cosine of the letters' counts: strings in, numbers out."""
    count = [np.array([[word.count(c) for c in "abcdefgh"] for word in words], float) for words in (A, B)]
    unit = [c / np.linalg.norm(c, axis=1, keepdims=True) for c in count]
    return unit[0] @ unit[1].T


# --- shapes that no hyperplane separates ------------------------------------------------------------------


SHAPES = {
    "moons": lambda seed: make_moons(400, noise=0.06, random_state=seed),
    "rings": lambda seed: make_circles(400, noise=0.05, factor=0.4, random_state=seed),
    "spirals": lambda seed: spirals(600, 0.1, seed),
}


@pytest.mark.parametrize("method", [MinimumDensity, SpectralConnectivity])
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_separate_what_is_not_convex(method, shape):
    X, y = SHAPES[shape](0)
    assert adjusted_rand_score(y, method(2).fit(X).labels_) < 0.8
    for kernel in ("diffusion", "rbf"):
        assert adjusted_rand_score(y, method(2, kernel=kernel).fit(X).labels_) > 0.97


@pytest.mark.parametrize("seed", [2, 4, 6])  # where the graph of the diffusion joins the arms
def test_the_default_width_separates_spirals_with_gaps(seed):
    X, y = SHAPES["spirals"](seed)
    assert adjusted_rand_score(y, MinimumDensity(2, kernel="rbf").fit(X).labels_) > 0.97


def test_with_one_start_a_pursuit_begins_at_the_first_component_only():
    X, y = SHAPES["moons"](0)
    alone = MinimumDensity(2, kernel="rbf", n_init=1).fit(X)
    first = np.eye(alone.feature_map_.n_components)[:1]
    given = with_method(MinimumDensity(2, kernel="rbf"), init=first).fit(X)
    assert (alone.labels_ == given.labels_).all()
    assert adjusted_rand_score(y, alone.labels_) < 0.9


# --- the same model by other ways -------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_a_precomputed_kernel_is_the_named_one(name):
    Z = (WINE - WINE.mean(axis=0)) / WINE.std(axis=0)
    K = rbf_kernel(Z, gamma=0.04)
    params = {"n_components": 0.9}
    named = PLAIN[name](3, kernel="rbf", kernel_params={"gamma": 0.04, **params}).fit(WINE)
    given = PLAIN[name](3, kernel="precomputed", kernel_params=params).fit(K)
    called = PLAIN[name](3, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.04), kernel_params=params).fit(Z)
    assert named.n_clusters_ == 3
    assert (given.labels_ == named.labels_).all()
    assert (called.labels_ == named.labels_).all()
    assert (given.predict(K[:40]) == named.predict(WINE[:40])).all()


def test_a_linear_kernel_is_no_kernel():
    plain = MinimumDensity(3).fit(WINE)
    linear = MinimumDensity(3, kernel="linear").fit(WINE)
    assert linear.feature_map_.n_components == 13
    # the lattice of directions lies along other axes, so that the ends differ by about its spacing
    assert adjusted_rand_score(plain.labels_, linear.labels_) > 0.9


@pytest.mark.parametrize("kernel", ["rbf", "diffusion"])
def test_training_rows_get_their_labels_again(kernel):
    model = MinimumDensity(3, kernel=kernel).fit(WINE)
    assert (model.predict(WINE) == model.labels_).all()
    assert (np.concatenate([model.predict(WINE[i : i + 1]) for i in range(20)]) == model.labels_[:20]).all()


def test_held_out_rows_get_the_label_that_they_get_together_with_the_rest():
    held = np.arange(len(WINE)) % 5 == 0
    whole = MinimumDensity(3, kernel="diffusion").fit(WINE)
    rest = MinimumDensity(3, kernel="diffusion").fit(WINE[~held])
    assert adjusted_rand_score(whole.labels_[held], rest.predict(WINE[held])) > 0.8


@pytest.mark.parametrize("kernel", ["rbf", "diffusion"])
def test_a_weight_is_as_many_copies(kernel):
    counts = np.random.default_rng(0).integers(0, 3, len(WINE))
    weighted = MinimumDensity(3, kernel=kernel).fit(WINE, sample_weight=counts)
    copied = MinimumDensity(3, kernel=kernel).fit(np.repeat(WINE, counts, axis=0))
    assert adjusted_rand_score(weighted.labels_, copied.predict(WINE)) == 1.0


def test_many_rows_are_mapped_block_by_block_in_few_passes(monkeypatch):
    monkeypatch.setattr("ravine.features.feature_map.HELD_BYTES", 1 << 20)
    largest = 0
    mapped = maps.KernelMap.__call__

    def watched(self, rows):
        nonlocal largest
        points = mapped(self, rows)
        largest = max(largest, points.nbytes)
        return points

    monkeypatch.setattr(maps.KernelMap, "__call__", watched)
    X = np.concatenate([np.random.default_rng(0).standard_normal((20_000, 3)) + c for c in (0.0, 6.0)])
    model = MinimumDensity(2, kernel="rbf", kernel_params={"landmarks": 30, "gamma": 0.1}).fit(X)
    assert adjusted_rand_score(np.repeat([0, 1], 20_000), model.labels_) > 0.99
    assert model.n_passes_ <= 25
    assert largest < 40_000 * 30 * 8 / 2  # never all rows at once
    assert (model.predict(X) == model.labels_).mean() > 0.9999


# --- rows that are not vectors ----------------------------------------------------------------------------


def test_strings_with_a_string_kernel():
    rng = np.random.default_rng(0)
    words = random_words(rng, "abcd", 60) + random_words(rng, "efgh", 60)
    model = MinimumDensity(2, kernel=letter_kernel).fit(words)
    assert adjusted_rand_score(np.repeat([0, 1], 60), model.labels_) == 1.0
    assert (model.predict(["abba", "feed" * 2]) == model.labels_[[0, -1]]).all()


def test_mixed_rows_of_a_data_frame():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 80)
    standardization = pd.DataFrame(
        {"size": rng.normal(4.0 * kind, 1.0), "color": np.where(kind, "red", "blue").astype(object)}
    )
    standardization.loc[rng.choice(160, 10), "color"] = "green"

    def mixed(A, B):
        apart = A["size"].to_numpy()[:, None] - B["size"].to_numpy()[None, :]
        same = A["color"].to_numpy()[:, None] == B["color"].to_numpy()[None, :]
        return np.exp(-(apart**2) / 8) + same

    model = MinimumDensity(2, kernel=mixed).fit(standardization)
    assert adjusted_rand_score(kind, model.labels_) > 0.9
    assert (model.predict(standardization.iloc[:7]) == model.labels_[:7]).all()


# --- keeping, and what there is none of -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        ("rbf", None),
        ("polynomial", {"degree": 2, "n_components": 5}),
        ("diffusion", {"diffusion_time": 4}),
        ("rbf", {"landmarks": 50}),
    ],
)
def test_saved_and_pickled_models_predict_the_same(kernel, params, tmp_path):
    model = MinimumDensity(3, kernel=kernel, kernel_params=params).fit(WINE)
    ravine.save(model, tmp_path / "model")
    for again in (ravine.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert (again.predict(WINE) == model.labels_).all()
        np.testing.assert_array_equal(again.transform(WINE), model.transform(WINE))
    assert model.feature_map_.nbytes > 0
    assert "MB" in repr(model.feature_map_)


def test_a_precomputed_model_is_kept_without_rows(tmp_path):
    K = rbf_kernel(IRIS)
    model = MinimumDensity(2, kernel="precomputed").fit(K)
    ravine.save(model, tmp_path / "model")
    assert (ravine.load(tmp_path / "model").predict(K) == model.labels_).all()


def test_a_model_file_with_a_broken_map_is_refused(tmp_path):
    ravine.save(MinimumDensity(2, kernel="rbf").fit(IRIS), tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as stored:
        parts = dict(stored)
    parts["map_landmarks"] = parts["map_landmarks"][:-1]
    np.savez(tmp_path / "broken.npz", **parts)
    with pytest.raises(InvalidModelError, match="map_landmarks has to be"):
        ravine.load(tmp_path / "broken.npz")


def test_functions_cannot_be_saved(tmp_path):
    model = MinimumDensity(2, kernel=lambda A, B: rbf_kernel(A, B)).fit(IRIS)
    with pytest.raises(InvalidInputError, match="is a function cannot be saved"):
        ravine.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_what_needs_columns_is_refused_with_a_sentence():
    model = MinimumDensity(2, kernel="rbf").fit(IRIS)
    with pytest.raises(RavineError, match="SQL is not available"):
        model.tree_.export_sql("iris")
    with pytest.raises(InvalidInputError, match="feature space of a kernel"):
        model.tree_.predict(IRIS)
    plain = MinimumDensity(2).fit(IRIS)
    with pytest.raises(InvalidInputError, match="without a kernel"):
        plain.tree_.resplit(0, model, IRIS)
    assert "component" in model.tree_.export_text()


def test_splits_of_the_feature_space_are_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    from ravine.view import plot

    model = MinimumDensity(2, kernel="rbf").fit(WINE)
    for draw in (plot.density, plot.split):
        assert draw(model, WINE) is not None
    assert plot.tree(model) is not None


@pytest.mark.parametrize(
    ("kernel", "params", "message"),
    [
        ("gauss", None, "kernel has to be .*'rbf'"),
        ("rbf", {"degree": 2}, "may hold 'gamma', .*got 'degree'"),
        ("rbf", {"gamma": -1.0}, "gamma has to be"),
        ("rbf", {"gamma": "scale"}, "gamma has to be"),
        ("rbf", {"n_components": 0}, "n_components"),
        ("rbf", {"n_components": 1.5}, "n_components"),
        ("rbf", {"landmarks": 1}, "landmarks"),
        ("rbf", [1], "kernel_params has to be a dict"),
        (None, [1], "kernel_params has to be a dict"),
        ("polynomial", {"degree": "two"}, "degree .*got 'two'"),
        ("sigmoid", {"coef0": "one"}, "coef0 .*got 'one'"),
        ("chi2", None, "at least 0.*standardize=False"),
        ("diffusion", {"gamma": 1.0}, "may hold 'n_neighbors', 'diffusion_time'"),
        ("diffusion", {"n_components": 0.5}, "whole number"),
        ("precomputed", None, r"square matrix.*got shape \(150, 4\)"),
        (lambda A, B: np.ones(3), None, r"shape \(150, 150\).*got shape \(3,\)"),
    ],
)
def test_bad_kernels_are_one_clear_error(kernel, params, message):
    with pytest.raises(InvalidInputError, match=message):
        MinimumDensity(2, kernel=kernel, kernel_params=params).fit(IRIS)


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2"])
def test_kernels_of_frequencies_refuse_negative_values(kernel):
    model = MinimumDensity(2, kernel=kernel, standardize=False).fit(IRIS)
    np.testing.assert_array_equal(model.predict(IRIS), model.labels_)
    for refused in (model.predict, model.fit):
        with pytest.raises(InvalidInputError, match=r"at least 0.*negative"):
            refused(IRIS - 5.0)


@pytest.mark.parametrize(("n", "expected"), [(90, 90), (200, 50), (1000, 20)])
def test_landmarks_keep_a_pass_no_dearer_than_the_exact_map(n, expected, monkeypatch):
    monkeypatch.setattr("ravine.features.kernel_map.EXACT_ROWS", 100)  # small: many landmarks take long
    monkeypatch.setattr("ravine.features.kernel_map.LANDMARKS", 20)
    X = np.random.default_rng(0).standard_normal((n, 2))
    model = MinimumDensity(2, kernel="rbf", n_init=1).fit(X)
    assert len(model.feature_map_.landmarks) == expected


# --- rows compared by angle --------------------------------------------------------------------------------


def topic_rows(n=80):
    rng = np.random.default_rng(0)
    topic = np.repeat(np.arange(3), n)
    rate = np.full((3, 60), 0.05)
    for k in range(3):
        rate[k, 20 * k : 20 * (k + 1)] = 0.6
    return rng.poisson(rate[topic]).astype(float), topic


def test_sparse_rows_are_compared_by_angle_whatever_their_length(tmp_path):
    X, topic = topic_rows()
    model = MinimumDensity(3, kernel="diffusion").fit(sparse.csr_matrix(X))
    assert model.feature_map_.metric == "cosine"
    assert sparse.issparse(model.feature_map_.landmarks)
    assert metrics.v_measure(topic, model.labels_) > 0.9
    lengths = np.random.default_rng(1).uniform(0.1, 10.0, (len(X), 1))
    plain = MinimumDensity(3, kernel="diffusion", standardize=False)  # without weights of the columns
    one, other = (plain.fit(sparse.csr_matrix(rows)).labels_ for rows in (X, X * lengths))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(X * lengths)), model.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)  # dense rows have the same angles
    ravine.save(model, tmp_path / "m")
    again = ravine.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(sparse.csr_matrix(X)), model.labels_)


def test_frequent_words_do_not_hide_the_topics():
    X, topic = topic_rows()
    everywhere = np.random.default_rng(2).poisson(30.0, (len(X), 5))
    rows = sparse.csr_matrix(np.column_stack([X, everywhere]))
    weighted = MinimumDensity(3, kernel="diffusion").fit(rows).labels_
    plain = MinimumDensity(3, kernel="diffusion", standardize=False).fit(rows).labels_
    assert metrics.v_measure(topic, weighted) > 0.9 > 0.6 > metrics.v_measure(topic, plain)
    counts = np.random.default_rng(3).integers(0, 3, len(X))
    one = MinimumDensity(3, kernel="diffusion").fit(rows, sample_weight=counts).labels_
    two = MinimumDensity(3, kernel="diffusion").fit(rows[np.repeat(np.arange(len(X)), counts)]).labels_
    assert metrics.v_measure(np.repeat(one, counts), two) > 0.9


def test_the_metric_of_the_diffusion_map_can_be_chosen():
    X, topic = topic_rows()
    angle = MinimumDensity(3, kernel="diffusion", kernel_params={"metric": "cosine"}).fit(X)
    assert metrics.v_measure(topic, angle.labels_) > 0.9
    assert MinimumDensity(3, kernel="diffusion").fit(X).feature_map_.metric == "euclidean"
    distance = {"metric": "euclidean"}
    rows = sparse.csr_matrix(X)
    found = MinimumDensity(3, kernel="diffusion", kernel_params=distance, standardize=True).fit(rows)
    np.testing.assert_array_equal(found.labels_, MinimumDensity(3, kernel="diffusion").fit(X).labels_)
    with pytest.raises(InvalidInputError, match=r"metric .*'euclidean', 'cosine'"):
        MinimumDensity(3, kernel="diffusion", kernel_params={"metric": "angle"}).fit(X)


@pytest.mark.parametrize("part", ["indptr", "indices"])
def test_damaged_sparse_landmarks_are_refused(part, tmp_path):
    path = tmp_path / "m"
    ravine.save(MinimumDensity(2, kernel="diffusion").fit(sparse.csr_matrix(topic_rows(20)[0])), path)
    with open(path, "rb") as file:
        stored = read_archive(file)
    stored.arrays[f"map_landmarks_{part}"][1] = 10**6
    path.write_bytes(write_archive(stored.facts, stored.arrays))
    with pytest.raises(InvalidModelError, match=f"map_landmarks_{part}"):
        ravine.load(path)
