"""Labels in a projection pursuit: what they count, which classes come together, which end is chosen."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ravine.data.node import Labels, open_node
from ravine.data.query import run
from ravine.index.connectivity import ConnectivitySchedule
from ravine.index.density import MinimumDensitySchedule
from ravine.optimize.pursuit import project
from ravine.split.labeled import (
    group_classes,
    support_planes,
    weight_of_mistakes,
)
from ravine.split.projection import ProjectionMethod
from ravine.split.search import search
from tests.nodes import measured, node_of
from tests.oracles import two_blobs

DENSITY = ProjectionMethod(MinimumDensitySchedule(), right=(1,))


def test_only_the_start_with_the_lowest_value_is_followed_if_asked():
    X, y = two_blobs(200, 4, gap=5.0)
    node = replace(measured(X), labels=Labels(X[::20], y[::20], np.ones(10)))
    method = replace(DENSITY, n_init=3)
    _, starts = run(method.starts(node))
    assert len(starts) == 4
    first = method.indices(node)[0]
    signed = [sign * start for start in starts for sign in (1.0, -1.0)]
    values = [first.evaluate(run(project(node, first.resolution, start)).profile).value for start in signed]
    _, (lowest,) = run(replace(method, lowest_start=True).starts(node))
    np.testing.assert_allclose(lowest, signed[int(np.argmin(values))])


def test_a_schedule_without_an_early_end_follows_all_gammas_with_the_last_index():
    labels = Labels(np.zeros((2, 1)), np.array([0, 1]), np.ones(2))
    node = measured(np.arange(100.0)[:, None], labels=labels)
    method = replace(DENSITY, schedule=MinimumDensitySchedule(n_alphas=3), gammas=(0.1, 1.0, 10.0))
    indices = method.indices(node)
    assert [index.gamma for index in indices] == [0.1, 0.1, 0.1, 1.0, 10.0]
    assert [round(index.index.alpha, 3) for index in indices] == [0.01, 0.455, 0.9, 0.9, 0.9]
    assert indices[0].sides.tolist() == [-1.0, 1.0]


def test_labels_weigh_more_against_the_logarithm_of_an_index_than_against_a_density():
    node = measured(np.arange(100.0)[:, None], labels=Labels(np.zeros((2, 1)), np.array([0, 1]), np.ones(2)))
    assert sorted({index.gamma for index in DENSITY.indices(node)}) == list(DENSITY.schedule.gammas)
    connectivity = replace(DENSITY, schedule=ConnectivitySchedule())
    assert {index.gamma for index in connectivity.indices(node)} == {10.0}


def test_without_labels_the_indices_are_those_of_the_schedule():
    node = measured(np.arange(100.0)[:, None])
    plain = MinimumDensitySchedule().indices(node.deviation, node.total, node.standardization.mean_variance)
    assert DENSITY.indices(node) == plain


def test_classes_are_grouped_by_the_weighted_means_of_their_rows():
    """Most weight of class 1 lies in a mode of its own; most of its rows lie among the other classes."""
    rng = np.random.default_rng(0)
    node = measured(np.concatenate([rng.standard_normal(200), 8 + rng.standard_normal(100)])[:, None])
    places = np.array([-1.5, 1.0, -1.0, 2.0, 8.0, *[-0.5] * 8])[:, None]
    classes, counts = np.array([0, 0, 2, 2, *[1] * 9]), np.array([100] * 5 + [1] * 8)
    method = ProjectionMethod(MinimumDensitySchedule(), gammas=(0.1, 1.0))

    def right_of(labels):
        return run(group_classes(replace(node, labels=labels), method, np.ones((1, 1))))

    copies = np.repeat(places, counts, axis=0), np.repeat(classes, counts)
    assert right_of(Labels(*copies, np.ones(counts.sum()))) == (1,)
    assert right_of(Labels(places, classes, counts.astype(float))) == (1,)
    assert right_of(Labels(places, classes, np.ones(13))) != (1,)


@pytest.mark.parametrize(("values", "best"), [((0.3, 0.0005, 0.0), 1), ((0.0009, 0.0, 0.5), 0)])
def test_of_ends_that_tie_the_first_is_chosen_whatever_the_rounding(values, best):
    few = np.random.default_rng(0).standard_normal((4, 3))
    node = node_of(few, labels=Labels(few, np.array([0, 0, 1, 1]), np.ones(4)))
    ends = [SimpleNamespace(point=SimpleNamespace(value=value)) for value in values]
    assert run(replace(DENSITY, named_sides=True).choose(node, ends))[0] is ends[best]


def test_two_classes_need_no_grouping_and_more_follow_a_search_without_labels():
    X, _ = two_blobs(200, 3, gap=8.0)
    plain = ProjectionMethod(MinimumDensitySchedule())
    few = np.arange(0, 200, 10)

    def prepared(classes):
        labels = Labels(X[few], classes, np.ones(20))
        return run(plain.prepare(run(open_node(measured(X, labels=labels), []))))

    two = prepared(np.repeat([3, 7], 10))
    assert (two.right, two.init) == ((7,), None)
    assert two.name == "minimum density with labels"
    three = prepared(np.repeat([0, 4, 9], [10, 5, 5]))
    assert three.right == (4, 9) or three.right == (0,)
    split = run(search(measured(X), plain))[1]
    assert abs(three.init[0] @ split.boundary.normal) == pytest.approx(
        np.linalg.norm(three.init) * np.linalg.norm(split.boundary.normal), rel=1e-3
    )


def test_where_a_search_without_labels_finds_nothing_there_is_nothing_to_group():
    X = np.linspace(-1.0, 1.0, 60)[:, None]  # one mode
    labels = Labels(X[[0, 30, 59]], np.array([0, 1, 2]), np.ones(3))
    opened = run(open_node(measured(X, labels=labels), []))
    assert run(ProjectionMethod(MinimumDensitySchedule()).prepare(opened)) is None


def test_the_machine_of_the_labels_is_a_start_and_every_start_has_its_better_sign():
    X, y = two_blobs(300, 4, gap=6.0, seed=1)
    few = np.arange(0, 300, 15)
    node = measured(X, labels=Labels(X[few], y[few], np.ones(len(few))))
    node, starts = run(DENSITY.starts(node))
    (plane,) = support_planes(node)
    np.testing.assert_allclose(starts[-1], plane[0] / np.linalg.norm(plane[0]))
    for sign in (1.0, -1.0):
        (end,) = run(replace(DENSITY, max_iter=0).solve_all(node, [sign * starts[-1]]))
        np.testing.assert_allclose(end.point.direction, starts[-1], atol=1e-3)  # class 1 on the right
        assert weight_of_mistakes(node.labels, (1,), end.point) == 0.0


def test_mistakes_are_counted_by_weight():
    X, y = two_blobs(300, 4, gap=6.0, seed=1)
    few = np.arange(0, 300, 15)
    wrong = y[few].copy()
    wrong[[0, 5]] = 1 - wrong[[0, 5]]
    weights = np.arange(1.0, len(few) + 1)
    node = measured(X, labels=Labels(X[few], wrong, weights))
    node, _ = run(DENSITY.starts(node))
    clear = replace(node, labels=replace(node.labels, classes=y[few]))
    (end,) = run(replace(DENSITY, max_iter=0).solve_all(clear, run(DENSITY.starts(clear))[1][-1:]))
    assert weight_of_mistakes(node.labels, (1,), end.point) == weights[0] + weights[5]


@pytest.mark.parametrize("classes", [(0, 1), (1, 0)])
def test_named_sides_follow_the_labels_and_clusters_have_a_fixed_sign(classes):
    X, y = two_blobs(300, 4, gap=6.0, seed=1)
    few = np.arange(0, 300, 15)
    named = np.array(classes)[y]
    labels = Labels(X[few], named[few], np.ones(len(few)))
    for keeps in (True, False):
        method = replace(DENSITY, named_sides=keeps)
        opened, split = run(search(node_of(X, labels=labels), method))
        found = opened.node
        right = split.boundary.signed_distance(found.rows) > 0
        if keeps:
            assert (right == (named == 1)).mean() > 0.98
        else:
            assert split.direction[np.argmax(np.abs(split.direction))] > 0


def test_pairs_left_on_one_side_are_counted_by_weight():
    rng = np.random.default_rng(0)
    classes, weights, right = (
        rng.integers(0, 3, 30),
        rng.integers(1, 5, 30).astype(float),
        rng.random(30) < 0.4,
    )
    pairs = 0.0
    for i in range(30):
        for j in range(i):
            if classes[i] != classes[j] and right[i] == right[j]:
                pairs += weights[i] * weights[j]
    assert Labels(rng.random((30, 2)), classes, weights).pairs_together(right) == pytest.approx(pairs)
