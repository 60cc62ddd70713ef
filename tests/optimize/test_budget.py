"""The budget of passes: few steps on rows that are not in memory, and a status that says so."""

import numpy as np
import pytest

from ravine.optimize.budget import FULL_STEPS, PASS_LIMIT, status_on, steps_on
from ravine.optimize.descent import CONVERGED, ITERATION_LIMIT
from tests.nodes import node_of


@pytest.mark.parametrize("is_local", [True, False])
def test_only_rows_that_are_not_in_memory_have_a_budget(monkeypatch, is_local):
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 1000 if is_local else 10)
    node = node_of(np.zeros((50, 3)))
    assert node.is_local == is_local
    assert steps_on(node, 40) == (40 if is_local else FULL_STEPS)
    assert steps_on(node, 2) == 2
    assert steps_on(node, 40, most=5) == (40 if is_local else 5)
    assert status_on(node, ITERATION_LIMIT) == (ITERATION_LIMIT if is_local else PASS_LIMIT)
    assert status_on(node, CONVERGED) == CONVERGED
