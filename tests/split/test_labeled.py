from types import SimpleNamespace

import numpy as np
import pytest

from ravine.data.memory import MemoryRows
from ravine.data.query import run
from ravine.data.standardization import standardization_of
from ravine.index.density import MinimumDensitySchedule
from ravine.optimize.pursuit import View
from ravine.split.labeled import MISTAKES, LabeledFamily, LabeledSplitter, group
from ravine.data.node import Labels
from ravine.split.support import support_machine


def family(rows, classes, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    return LabeledFamily(MinimumDensitySchedule(), Labels(rows, classes, weights), (1.0,), right=(1,))


def test_labels_that_a_hyperplane_parts_count_in_full():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    assert family(rows, (rows[:, 0] > 0).astype(int)).overlap(rows) == 1.0


def test_labels_that_overlap_count_less_by_the_mistakes_of_a_machine():
    rng = np.random.default_rng(1)
    classes = np.arange(200) % 2
    rows = rng.normal(size=(200, 3)) + classes[:, None]
    counts = rng.integers(1, 4, 200)
    (normal,), (intercept,) = support_machine(rows, classes, counts.astype(float))
    mistakes = 0
    for row, c, count in zip(rows, classes, counts, strict=True):
        mistakes += count if (row @ normal + intercept > 0) != c else 0
    assert mistakes > 20
    found = family(rows, classes, counts.astype(float)).overlap(rows)
    assert found == pytest.approx(mistakes / MISTAKES)
    copied = np.repeat(rows, counts, axis=0)
    assert family(copied, np.repeat(classes, counts)).overlap(copied) == pytest.approx(found)


def test_a_family_without_an_early_end_follows_all_gammas_and_the_last_index():
    labels = Labels(np.zeros((2, 1)), np.array([0, 1]), np.ones(2))
    family = LabeledFamily(MinimumDensitySchedule(n_alphas=3), labels, (0.1, 1.0, 10.0), (1,))
    indices = family.indices(1.0, 100.0, 1.0)
    assert [index.gamma for index in indices] == [0.1, 0.1, 0.1, 1.0, 10.0]
    assert [round(index.index.alpha, 3) for index in indices] == [0.01, 0.455, 0.9, 0.9, 0.9]
    assert indices[0].sides.tolist() == [-1.0, 1.0]


def test_classes_are_grouped_by_the_weighted_means_of_their_rows():
    """Most weight of class 1 lies in a heap of its own; most of its rows lie among the other classes."""
    rng = np.random.default_rng(0)
    rows = MemoryRows(np.concatenate([rng.standard_normal(200), 8 + rng.standard_normal(100)])[:, None])
    standardization = run(rows, standardization_of(rows, None, True))
    places = np.array([-1.5, 1.0, -1.0, 2.0, 8.0, *[-0.5] * 8])[:, None]
    classes, counts = np.array([0, 0, 2, 2, *[1] * 9]), np.array([100] * 5 + [1] * 8)

    def right_of(labels):
        family = LabeledFamily(MinimumDensitySchedule(), labels, (0.1, 1.0))
        return run(rows, group(rows, family, standardization, np.ones((1, 1)), np.random.default_rng(0)))

    copies = np.repeat(places, counts, axis=0), np.repeat(classes, counts)
    assert right_of(Labels(*copies, np.ones(counts.sum()))) == (1,)
    assert right_of(Labels(places, classes, counts.astype(float))) == (1,)
    assert right_of(Labels(places, classes, np.ones(13))) != (1,)


@pytest.mark.parametrize(("values", "best"), [((0.3, 0.0005, 0.0), 1), ((0.0009, 0.0, 0.5), 0)])
def test_of_ends_that_tie_the_first_is_kept_whatever_the_rounding(monkeypatch, values, best):
    rng = np.random.default_rng(0)
    rows = MemoryRows(rng.standard_normal((60, 3)))
    standardization = run(rows, standardization_of(rows, None, True))
    few = rng.standard_normal((4, 3))
    ends = iter([SimpleNamespace(point=SimpleNamespace(value=value)) for value in values])

    def pursue(splitter, view, start, indices):
        return next(ends)
        yield

    monkeypatch.setattr(LabeledSplitter, "_pursue", pursue)
    splitter = LabeledSplitter(family=family(few, np.array([0, 0, 1, 1])), named=True)
    found = run(rows, splitter._best(rows, View(standardization, 1.0, few), np.eye(3), 0.0))
    assert found.point.value == values[best]
