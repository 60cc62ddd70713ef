import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from ravine.papers.variable_metric import SAME_VALUE, variable_metric


def run(fun, jac, start, **options):
    return minimize(
        fun, start, jac=jac, method=variable_metric, options={"maxiter": 100, "gtol": 0.0, **options}
    )


def test_takes_the_steps_of_optim():
    """R 4.2: optim(c(-1.2, 1), f, g, method = "BFGS") with the Rosenbrock function, every value of f."""
    values = []

    def noted(x):
        values.append(rosen(x))
        return values[-1]

    found = run(noted, rosen_der, [-1.2, 1.0])
    first = [24.2, 2.10482e11, 3.02305e8, 256035, 204.311, 20.2271, 163191, 267.725, 8.60678, 1.09084e9]
    assert values[:10] == pytest.approx(first, rel=1e-5)
    assert values[77:85] == pytest.approx(
        [
            4.98623e-05,
            1.39602e-05,
            1.00879e-06,
            7.12196e-09,
            1.4028e-10,
            0.000111026,
            4.40446e-06,
            1.69197e-07,
        ],
        rel=1e-4,
    )
    assert found.nit == 42  # R counts 43 gradients, with that of the start
    assert found.x == pytest.approx([1.0, 1.0], abs=1e-6)


def test_no_step_is_longer_than_the_gradient_at_first():
    tried = []

    def fun(x):
        tried.append(float(x[0]))
        return float(x[0])

    run(fun, lambda x: np.array([0.25]), [0.0], maxiter=1)
    assert tried == [0.0, -0.25]


def test_a_step_is_shortened_until_it_gains_enough():
    tried = []

    def fun(x):
        tried.append(float(x[0]))
        return 100.0 * float(x[0]) ** 2

    found = run(fun, lambda x: 200.0 * x, [1.0])
    assert tried[1:5] == pytest.approx([1.0 - 200.0 * 0.2**k for k in range(4)])
    assert found.x == pytest.approx([0.0], abs=1e-6)


def test_ends_at_a_flat_place_and_at_the_limit():
    flat = run(lambda x: 1.0, lambda x: np.zeros(2), [1.0, 2.0])
    assert (flat.nit, flat.status, flat.x.tolist()) == (0, 0, [1.0, 2.0])
    slow = run(rosen, rosen_der, [-1.2, 1.0], maxiter=5)
    assert (slow.nit, slow.status) == (5, 1)


def test_ends_when_the_gain_is_small():
    rise = 0.5 * SAME_VALUE
    found = run(lambda x: 1.0 + rise * float(x[0]), lambda x: np.array([rise]), [0.0])
    assert (found.nit, found.status) == (0, 0)
