"""The maximum margin split: its figures, what it costs, and where there is none."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from ravine import InvalidInputError, MaximumMargin, metrics
from ravine.data.blocks import SparseBlock
from ravine.data.query import run
from ravine.split.split import NO_VALLEY
from tests.nodes import measured
from tests.oracles import two_blobs

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
DIGITS = load_digits()
REAL = {
    "iris": load_iris().data,
    "wine": load_wine().data,
    "breast cancer": load_breast_cancer().data,
    "digits 3 and 8": DIGITS.data[np.isin(DIGITS.target, (3, 8))],
}


@pytest.mark.parametrize("name", REAL)
def test_the_facts_of_a_split_are_those_of_the_plain_sums(name):
    X = REAL[name]
    model = MaximumMargin(2).fit(X)
    split = model.tree_.splits[0]
    facts = split.facts
    Z = StandardScaler().fit_transform(X)
    f = (Z @ split.direction - split.boundary.threshold) / facts["margin"]
    np.testing.assert_array_equal(model.labels_, f > 0)
    assert facts["slack"] == pytest.approx(np.maximum(0, 1 - np.abs(f)).mean(), rel=1e-9)
    assert facts["support"] == pytest.approx((np.abs(f) < 1).mean(), abs=2 / len(X))
    assert facts["violation"] <= 0.01
    assert facts["C"] == pytest.approx(10 / np.linalg.eigvalsh(np.cov(Z.T, bias=True))[-1])
    assert split.value == pytest.approx(0.5 / facts["margin"] ** 2 / facts["C"] + facts["slack"])
    assert abs(f.mean()) <= 0.03 + 1e-9
    assert "more than 0.01" in split.status


def test_the_balance_bounds_the_mean_whatever_the_number_of_rows():
    X = two_blobs(400, 3, gap=6.0, share=0.2)[0]
    means = []
    for balance, copies in itertools.product((0.0, 0.1, 0.5), (1, 5)):
        many = np.repeat(X, copies, axis=0)
        model = MaximumMargin(2, balance=balance).fit(many)
        split = model.tree_.splits[0]
        means.append(abs(model.transform(many).mean()) / split.facts["margin"])
        assert means[-1] <= balance + 1e-9
    assert means[::2] == pytest.approx(means[1::2], abs=1e-6)
    assert means[0] < means[2] < means[4]


def test_more_starts_never_have_a_worse_objective():
    X = REAL["digits 3 and 8"]
    values = [
        MaximumMargin(2, C=3.0, balance=0.2, n_init=n).fit(X).tree_.splits[0].value for n in (1, 2, 4, 8)
    ]
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(values))


def test_a_c_so_small_that_w_is_zero_is_no_split():
    X = REAL["wine"]
    with pytest.warns(ConvergenceWarning, match="1 of 1 splits have no valley"):
        model = MaximumMargin(2, C=1e-4).fit(X)
    assert NO_VALLEY in model.tree_.splits[0].facts
    assert NO_VALLEY not in MaximumMargin(2, C=1.0).fit(X).tree_.splits[0].facts


def test_sparse_rows_are_never_written_out_and_give_the_same_sides(monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    X = (rng.random((400, 300)) < 0.02 + 0.1 * ((np.arange(300) < 60) == labels[:, None])) * rng.random(
        (400, 300)
    )
    dense = MaximumMargin(2, standardize=False).fit(X)

    written_out = SparseBlock.dense

    def refuse(self):
        assert len(self) <= 8, "written out"  # a few rows may be, to start from
        return written_out(self)

    monkeypatch.setattr(SparseBlock, "dense", refuse)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        csr = MaximumMargin(2, standardize=False).fit(kind(X))
        np.testing.assert_array_equal(csr.labels_, dense.labels_)
    assert metrics.clustering_error(labels, dense.labels_) < 0.02


def test_units_do_not_matter_to_the_defaults():
    X = REAL["iris"]
    for standardize in (True, False):
        one = MaximumMargin(2, standardize=standardize).fit(X)
        two = MaximumMargin(2, standardize=standardize).fit(4096.0 * X + 7.0)
        np.testing.assert_array_equal(one.labels_, two.labels_)


def test_many_rows_cost_few_passes_and_all_constraints_hold():
    X, labels = two_blobs(60_000, 6, gap=6.0)
    model = MaximumMargin(2).fit(X)
    assert metrics.clustering_error(labels, model.labels_) < 0.005
    split = model.tree_.splits[0]
    f = model.transform(X)[:, 0] / split.facts["margin"]
    assert split.facts["slack"] == pytest.approx(np.maximum(0, 1 - np.abs(f)).mean(), rel=1e-6)
    assert split.facts["violation"] <= 0.01
    assert model.n_passes_ < 30


def test_auto_finds_the_groups_and_does_not_split_one_mode():
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0], [12, 0, 0], [0, 12, 0]])
    X = rng.standard_normal((300, 3)) + centers[np.arange(300) % 3]
    model = MaximumMargin("auto").fit(X)
    assert model.n_clusters_ == 3
    assert metrics.clustering_error(np.arange(300) % 3, model.labels_) < 0.01
    assert MaximumMargin("auto").fit(rng.standard_normal((300, 3))).n_clusters_ == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 0},
        {"C": "large"},
        {"C": np.inf},
        {"balance": 1.0},
        {"balance": -0.1},
        {"balance": "even"},
        {"n_init": 0},
        {"max_iter": 0},
    ],
)
def test_bad_parameters(parameters):
    with pytest.raises(InvalidInputError, match=next(iter(parameters))):
        MaximumMargin(**parameters).fit(REAL["iris"])


def test_starts_between_directions_come_from_the_seed_of_the_node():
    X = two_blobs(200, 3)[0]
    found = [
        np.array([one.plane.w for one in run(method.starts(node))[1]])
        for method in [MaximumMargin(2, n_init=14)._method()]
        for node in (measured(X, seed=seed) for seed in (1, 1, 2))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_a_qp_that_is_singular_for_a_small_ridge_is_solved_with_a_larger_one():
    X = load_digits().data[:400]
    assert MaximumMargin(3, balance=0.1, random_state=0).fit(X).n_clusters_ == 3
