"""The one search: which rows each stage sees, when it ends, and what `measure` makes of an outcome."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from ravine import (
    MaximinSeparation,
    MaximumMargin,
    MinimumDensity,
    PrincipalDirection,
    SpectralConnectivity,
)
from ravine.data.node import LARGE_SAMPLE
from ravine.data.node import measure as measure_node
from ravine.data.query import run
from ravine.split.boundary import Hyperplane, NearestCenter
from ravine.split.search import BaseMethod, Outcome, measure_boundary, search
from tests.nodes import measured, node_of
from tests.oracles import relative_depth, two_blobs


@dataclass
class Recording(BaseMethod):
    """A method that finds the first column, and records what it is asked and about which node."""

    samples: bool = True
    calls: list = field(default_factory=list)
    threshold: float = 0.0
    starts_from: tuple = ("a", "b")
    chosen: str | None = "b"
    resumed: object = True
    outcome: bool = True
    name: str = "recording"

    def starts(self, node):
        self.calls.append(("starts", node, None))
        return replace(node, deviation=1.0), self.starts_from
        yield

    def solve(self, node, start):
        self.calls.append(("solve", node, start))
        return start
        yield

    def choose(self, node, ends):
        self.calls.append(("choose", node, tuple(ends)))
        return sorted(ends, reverse=True) if self.chosen else []
        yield

    def resume(self, node, end, last):
        self.calls.append(("resume", node, (end, last)))
        return end if self.resumed else None
        yield

    def finish(self, node, end):
        self.calls.append(("finish", node, end))
        return Outcome(np.eye(node.n_features)[0], self.threshold, 0.5, "done", 1) if self.outcome else None
        yield

    def prepare(self, opened):
        self.calls.append(("prepare", opened.node, None))
        return self
        yield

    def verbs(self):
        return [verb for verb, _, _ in self.calls]

    def node_in(self, verb):
        return next(node for name, node, _ in self.calls if name == verb)


def rows(n, d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def are_among(some, all_rows):
    return {row.tobytes() for row in some} <= {row.tobytes() for row in all_rows}


# --- stages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [500, LARGE_SAMPLE - 1])
def test_fewer_rows_are_all_seen_at_once(n):
    X, method = rows(n), Recording()
    opened, split = run(search(node_of(X), method))
    node = opened.node
    assert method.verbs() == ["prepare", "starts", "solve", "solve", "choose", "finish"]
    for _, seen, _ in method.calls:
        assert seen.rows is node.rows
    assert split.method == "recording"


@pytest.mark.parametrize("small", [None, 500])
def test_starts_are_solved_on_the_smallest_sample_and_the_best_sees_all_rows_at_last(monkeypatch, small):
    monkeypatch.setattr("ravine.split.search.FINALIST_ROWS", 0)
    if small is not None:  # so that there are two samples
        monkeypatch.setattr("ravine.data.node.LARGE_SAMPLE", small)
    n = 30_000
    sizes = [n // 2] if small is None else [small, n // 16]
    X, method = rows(n), Recording()
    opened, _ = run(search(node_of(X), method))
    node = opened.node
    stages = ["resume"] * len(sizes)
    assert method.verbs() == ["prepare", "starts", "solve", "solve", "choose", *stages, "finish"]
    for verb in ("starts", "solve", "choose"):
        assert method.node_in(verb).n_rows == sizes[0]
    assert [given for verb, _, given in method.calls if verb == "solve"] == ["a", "b"]
    resumed = [(seen.n_rows, *given) for verb, seen, given in method.calls if verb == "resume"]
    assert resumed == [(size, "b", False) for size in sizes[1:]] + [(n, "b", True)]
    last = [seen for verb, seen, _ in method.calls if verb == "resume"][-1]
    for seen in (last, method.node_in("finish"), method.node_in("prepare")):
        assert seen.rows is node.rows
    assert all(seen.deviation == 1.0 for verb, seen, _ in method.calls if verb in ("resume", "finish"))


def test_several_of_the_best_ends_go_on_where_all_rows_are_few():
    X, method = rows(20_000), Recording()
    run(search(node_of(X), method))
    resumed = [(seen.n_rows, given[0]) for verb, seen, given in method.calls if verb == "resume"]
    assert resumed == [(20_000, "b"), (20_000, "a")]
    assert method.verbs()[-2:] == ["choose", "finish"]


def test_a_sample_has_the_scale_of_all_rows_its_own_mean_and_its_share_of_the_minimum_weight():
    X, method = rows(20_000) * [1.0, 50.0] + 3.0, Recording()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 20_000)
    opened, _ = run(search(node_of(X, weights, min_weight=100.0), method))
    node = opened.node
    drawn = method.node_in("starts")
    assert are_among(drawn.rows.array, X)
    assert len(np.unique(drawn.rows.array, axis=0)) == 10_000
    np.testing.assert_array_equal(drawn.standardization.inverse_scale, node.standardization.inverse_scale)
    own = np.average(drawn.rows.array, axis=0, weights=drawn.rows.weights)
    np.testing.assert_allclose(drawn.standardization.mean, own)
    assert drawn.min_weight == pytest.approx(100.0 * drawn.total / node.total)
    np.testing.assert_array_equal(drawn.pivot, node.pivot)


def test_the_sample_depends_on_the_stream_of_the_node_and_on_nothing_else():
    X = rows(20_000)

    def drawn(seed):
        method = Recording()
        run(search(node_of(X, seed=seed), method))
        return method.node_in("starts").rows.array

    np.testing.assert_array_equal(drawn(0), drawn(0))
    assert (drawn(0) != drawn(1)).any()


def test_a_method_without_samples_sees_all_rows_from_the_start():
    method = Recording(samples=False)
    opened, _ = run(search(node_of(rows(20_000)), method))
    node = opened.node
    assert "resume" not in method.verbs()
    assert method.node_in("starts").rows is node.rows


def test_a_sample_in_which_nothing_varies_is_left_out():
    X = np.zeros((20_000, 2))
    X[0] = 1.0
    method = Recording(threshold=0.5)
    for seed in range(20):  # a stream whose sample misses the only row that differs
        drawn = Recording()
        run(search(node_of(rows(20_000), seed=seed), drawn))
        if not are_among(rows(20_000)[:1], drawn.node_in("starts").rows.array):
            break
    opened, split = run(search(node_of(X, seed=seed), method))
    node = opened.node
    assert method.node_in("starts").rows is node.rows
    assert split is not None


# --- ends ------------------------------------------------------------------------------------------------


def test_constant_rows_are_measured_and_not_searched():
    method = Recording()
    opened, split = run(search(node_of(np.ones((50, 3))), method))
    node = opened.node
    assert split is None
    assert method.calls == []
    assert node.standardization.constant.all()


@pytest.mark.parametrize(
    ("options", "last"),
    [({"chosen": None}, "choose"), ({"resumed": None}, "resume"), ({"outcome": False}, "finish")],
)
def test_a_search_ends_where_a_step_finds_nothing(options, last):
    method = Recording(**options)
    opened, split = run(search(node_of(rows(20_000)), method))
    node = opened.node
    assert split is None
    assert method.verbs()[-1] == last
    assert node.measured is not None


@dataclass
class Preparing(Recording):
    """A method that hands over to another one."""

    other: object = None

    def prepare(self, opened):
        self.calls.append(("prepare", opened.node, None))
        return self.other
        yield


def test_prepare_may_end_the_search_or_hand_over_to_another_method():
    nothing = Preparing(other=None)
    opened, split = run(search(node_of(rows(300)), nothing))
    node = opened.node
    assert (split, nothing.verbs()) == (None, ["prepare"])
    assert nothing.node_in("prepare").measured is not None
    assert node.measured is not None

    other = Recording(name="other")
    first = Preparing(other=other)
    _, split = run(search(node_of(rows(300)), first))
    assert first.verbs() == ["prepare"]
    assert other.verbs()[0] == "starts"  # it is not prepared again
    assert split.method == "other"


def test_whether_samples_are_used_is_up_to_the_prepared_method():
    other = Recording(samples=False)
    opened, _ = run(search(node_of(rows(10_000)), Preparing(other=other)))
    node = opened.node
    assert other.node_in("starts").rows is node.rows


# --- measure ---------------------------------------------------------------------------------------------


def bimodal(n=400, d=3, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    X[: n // 4, 0] += 6.0
    return X


def valley(node):
    """The place between the two modes, standardized."""
    return float(node.standardization.apply(np.array([[3.0, 0.0, 0.0]]))[0, 0])


def outcome_of(direction, threshold, **options):
    return Outcome(np.asarray(direction, dtype=float), threshold, 0.5, "done", 7, **options)


def test_the_sign_of_a_split_is_fixed_and_its_sides_are_those_of_the_outcome():
    node = measured(bimodal(), standardize=False)
    for sign in (1.0, -1.0):
        split = run(measure_boundary(node, Recording(), outcome_of([sign, 0.0, 0.0], sign * valley(node))))
        np.testing.assert_array_equal(split.direction, [1.0, 0.0, 0.0])
        np.testing.assert_array_equal(
            split.boundary.signed_distance(node.rows) > 0, node.rows.array[:, 0] > 3.0
        )
        assert split.quality > 0.5
        assert (split.value, split.status, split.n_iter, split.method) == (0.5, "done", 7, "recording")


def test_named_sides_keep_the_sign_and_may_be_empty():
    node = measured(bimodal(), standardize=False)
    split = run(measure_boundary(node, Recording(), outcome_of([-1.0, 0.0, 0.0], -0.5, named_sides=True)))
    np.testing.assert_array_equal(split.direction, [-1.0, 0.0, 0.0])
    beyond = outcome_of([1.0, 0.0, 0.0], 100.0)
    assert run(measure_boundary(node, Recording(), replace(beyond, named_sides=True))) is not None
    assert run(measure_boundary(node, Recording(), beyond)) is None


def test_the_threshold_is_about_the_mean_of_all_rows_in_the_users_units():
    X = 1e6 + 250.0 * bimodal()
    for standardize in (True, False):
        root = measured(X, standardize=standardize)
        part = X[X[:, 1] > X[:, 1].mean()]
        node = measured(part, standardize=standardize, root_standardization=root.standardization)
        split = run(measure_boundary(node, Recording(), outcome_of([1.0, 0.0, 0.0], 0.25)))
        np.testing.assert_array_equal(split.boundary.pivot, root.standardization.mean)
        unit = X[:, 0].std() if standardize else 1.0
        own = node.standardization
        at = part[:, 0].mean() + 0.25 / own.inverse_scale[0]
        assert split.boundary.threshold == pytest.approx((at - X[:, 0].mean()) / unit)
        far = np.array([[at + 2 * X[:, 0].std(), *X[0, 1:]]])
        expected = 2.0 if standardize else 2 * X[:, 0].std()
        assert split.boundary.signed_distance_of(far)[0] == pytest.approx(expected)


def test_a_side_needs_the_minimum_weight_by_weight_and_not_by_rows():
    X = bimodal()
    weights = np.where(np.arange(400) < 100, 0.5, 1.0)
    right = None
    for min_weight, there in ((1.0, True), (49.0, True), (52.0, False), (90.0, False)):
        node = measured(X, weights, min_weight=min_weight, standardize=False)
        found = run(measure_boundary(node, Recording(), outcome_of([1.0, 0.0, 0.0], valley(node))))
        assert (found is not None) == there
        if found is not None:
            right = weights[found.boundary.signed_distance(node.rows) > 0].sum()
    assert 49.0 <= right < 52.0


def test_an_empty_side_is_no_split_even_without_a_minimum_weight():
    X = bimodal()
    edge = (X[:, 0].max() - X[:, 0].mean()) / measured(X, standardize=False).standardization.unit
    node = measured(X, min_weight=0.0, standardize=False)
    assert run(measure_boundary(node, Recording(), outcome_of([1.0, 0.0, 0.0], edge + 1e-9))) is None
    assert run(measure_boundary(node, Recording(), outcome_of([1.0, 0.0, 0.0], edge - 1e-3))) is not None


@pytest.mark.parametrize("narrow", [1e-3, 1e-6])
def test_the_weights_of_the_sides_are_exact_where_rows_hardly_vary_along_the_direction(narrow):
    X = np.random.default_rng(0).standard_normal((300, 2)) * [1.0, narrow]
    node = measured(X, min_weight=140.0, standardize=False)
    t = node.standardization.apply(X)[:, 1]
    split = run(measure_boundary(node, Recording(), outcome_of([0.0, 1.0], float(np.median(t)))))
    assert split is not None
    assert (split.boundary.signed_distance(node.rows) > 0).sum() == 150


def test_the_bandwidth_is_that_of_the_first_principal_direction_or_the_methods_own():
    X = bimodal()
    node = measured(X, standardize=False)
    widest = np.sqrt(np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1])
    usual = run(measure_boundary(node, Recording(), outcome_of([1.0, 0.0, 0.0], 0.5)))
    assert usual.facts["bandwidth"] == pytest.approx(0.9 * widest * 400**-0.2)
    outcome = outcome_of([1.0, 0.0, 0.0], 0.5, bandwidth=0.01, facts={"alpha": 2.0})
    own = run(measure_boundary(node, Recording(), outcome))
    assert own.facts == {"alpha": 2.0, "bandwidth": pytest.approx(0.01 * node.standardization.unit)}


def test_centers_are_mirrored_together_with_their_direction():
    node = measured(bimodal(), standardize=False)
    own = node.standardization
    right = np.array([False, True])
    places = np.array([[0.0, 0.0], [6.0, 0.0]]) - own.mean[:2]
    centers = NearestCenter(own.unit * own.normals(np.eye(3)[:2]), own.mean, places, right)
    splits = [
        run(measure_boundary(node, Recording(), outcome_of([sign, 0, 0], 0.0, centers=boundary)))
        for sign, boundary in ((1.0, centers), (-1.0, replace(centers, right=~right)))
    ]
    for split in splits:
        np.testing.assert_array_equal(split.direction, [1.0, 0.0, 0.0])
        np.testing.assert_array_equal(split.boundary.right, right)
    assert splits[0].quality == pytest.approx(splits[1].quality, rel=1e-9)
    assert splits[0].quality > 0.5
    np.testing.assert_allclose(*(split.boundary.signed_distance(node.rows) for split in splits))


METHODS = {
    "minimum density": MinimumDensity(2),
    "maximum margin": MaximumMargin(2),
    "mean of the principal direction": PrincipalDirection(2),
    "valley of the principal direction": PrincipalDirection(2, threshold="density"),
    "mpm": MaximinSeparation(2, solver="mpm"),
    "gep": MaximinSeparation(2, solver="gep"),
    "eig": MaximinSeparation(2, solver="eig"),
    "connectivity": SpectralConnectivity(2),
    "orthogonal": SpectralConnectivity(2, n_directions=2),
}


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("data", ["iris", "blobs", "moons"])
@pytest.mark.parametrize("name", METHODS)
def test_quality_is_the_relative_depth_of_the_signed_distances_for_every_method(name, data, standardize):
    X = {
        "iris": load_iris().data,
        "blobs": 40.0 * two_blobs(300, 4, gap=4.0, seed=3)[0],
        "moons": np.column_stack([make_moons(300, noise=0.05, random_state=0)[0], rows(300, 1)[:, 0] / 10]),
    }[data]
    model = METHODS[name].set_params(standardize=standardize).fit(X)
    (split,) = (split for split in model.tree_.splits if split is not None)
    distances = split.boundary.signed_distance(model.tree_.rows(X))
    expected = relative_depth(distances, split.facts["bandwidth"], 0.0)
    assert 0.0 <= split.quality <= 1.0
    assert split.quality == pytest.approx(expected / (1.0 + expected), abs=0.01)
    assert split.relative_depth == pytest.approx(expected, rel=0.05, abs=0.05)
    assert split.direction[np.argmax(np.abs(split.direction))] > 0
    np.testing.assert_allclose(np.linalg.norm(split.direction), 1.0)
    if isinstance(split.boundary, Hyperplane):
        own = run(measure_node(node_of(X, standardize=standardize))).standardization
        np.testing.assert_allclose(split.boundary.normal, own.unit * own.normals(split.direction))


@pytest.mark.parametrize("n", [500, 20_000])
def test_a_search_leaves_no_copy_of_its_rows(n):
    X = two_blobs(n, 3, gap=6.0)[0]
    opened, split = run(search(node_of(X), MinimumDensity(2)._method()))
    assert split is not None
    for one in (opened.node, *opened.samples):
        assert one.standardized is None
