import numpy as np
import pytest

from ravine.data.frame import Frame
from ravine.optimise.pursuit import View
from ravine.split.labelled import MISTAKES, LabelledFamily
from ravine.split.labels import Labels, support_machine
from ravine.split.projection import MinimumDensityFamily


def family(rows, classes, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    return LabelledFamily(MinimumDensityFamily(), Labels(rows, classes, weights), (1.0,), right=(1,))


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
    frame = Frame(np.zeros(1), np.ones(1), np.ones(1), 100.0, np.zeros(1, dtype=bool))
    indices = LabelledFamily(MinimumDensityFamily(n_alphas=3), labels, (0.1, 1.0, 10.0), (1,)).indices(
        View(frame, 1.0, labels.rows)
    )
    assert [index.gamma for index in indices] == [0.1, 0.1, 0.1, 1.0, 10.0]
    assert [round(index.index.alpha, 3) for index in indices] == [0.01, 0.455, 0.9, 0.9, 0.9]
    assert indices[0].sides.tolist() == [-1.0, 1.0]
