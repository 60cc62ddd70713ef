"""A limited-memory quasi-Newton descent on the unit sphere that is asked and told.

A `Descent` holds the direction to evaluate next. It never evaluates anything itself: who drives it may ask
rows in files, on a cluster or in memory, for any index.

    while descent.running:
        point = evaluate(descent.direction)
        descent.tell(point.value, point.gradient)

All directions lie on a lattice, see `snap`. If no step of a line search decreases the value enough, as at a
kink, one search along the steepest descent follows, and if that fails, too, the descent ends.
"""

import math

import numpy as np

from libc.math cimport INFINITY, cos, isfinite, rint, sin, sqrt
from libc.string cimport memcpy, memmove

cdef enum: PAIRS = 12  # pairs (step, change of the gradient) of the limited-memory update; a choice
cdef double FIRST_ANGLE = 0.15  # radians of the first step, before any curvature is known; a choice
cdef double LARGEST_ANGLE = 0.6  # radians of the longest step: the quadratic model is local; a choice
cdef double SUFFICIENT = 1e-4  # share of the predicted decrease that a step has to reach: Armijo's rule, its usual value
cdef double FINENESS = 64.0  # directions lie on a lattice of spacing tol / FINENESS / sqrt(d), or finer; a choice
cdef double LEAST_SPACING = 2.0**-40  # of that lattice, for a tol near 0: 4 digits above rounding

CONVERGED = "converged (gradient)"
CONVERGED_OBJECTIVE = "converged (objective)"
ITERATION_LIMIT = "iteration limit"

cdef enum: RUNNING, SMALL_GRADIENT, SMALL_GAIN, LOWEST, LIMIT
ENDS = ("running", CONVERGED, CONVERGED_OBJECTIVE, "converged (no step lowers the value)", ITERATION_LIMIT)


cdef double dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    """Return a . b, added in order."""
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(n):
        total += a[j] * b[j]
    return total


cdef void subtract(double* x, double factor, const double* y, Py_ssize_t n) noexcept nogil:
    """x -= factor y."""
    cdef Py_ssize_t j
    for j in range(n):
        x[j] -= factor * y[j]


def spacing_for(double tol, int n_features):
    """Return the spacing of the lattice of directions, a power of two: at most tol / FINENESS / sqrt(d)."""
    cdef double wanted = tol / FINENESS / sqrt(n_features)
    return max(2.0 ** math.floor(math.log2(wanted)), LEAST_SPACING) if wanted > 0.0 else LEAST_SPACING


def snap(direction, double spacing):
    """Return the unit vector of the lattice point next to a direction.

    A descent of fifty steps multiplies differences of rounding (another processor, noise of 1e-12 in the
    rows) by 1.5 in every step, until they are as large as the step. Between lattice points they vanish.
    """
    coordinates = np.rint(np.asarray(direction) / spacing)
    return coordinates / math.sqrt(coordinates @ coordinates)


cdef class Descent:
    """The state of a descent: the trial direction, the best point so far, and the known curvature.

    Parameters
    ----------
    start : array of shape (d,)
        The first direction to evaluate, a unit vector.
    curvature : pair of arrays of shape (k, d), optional
        Steps and changes of the gradient along them, of a descent before this one: a model of the inverse
        Hessian. They are not transported between tangent planes: steps are short, and results are projected.
    tol : float
        The descent ends where the norm of the gradient is at most this.
    progress : float
        It also ends after a step that decreases the value by less.
    max_iter : int
        Most evaluations besides the first one: each may cost a pass over the rows.

    Examples
    --------
    >>> matrix, descent = np.diag([3.0, 2.0, 1.0]), Descent(np.ones(3) / 3**0.5, tol=1e-6, progress=0.0, max_iter=99)
    >>> while descent.running:
    ...     v = descent.direction
    ...     value = float(v @ matrix @ v)
    ...     _ = descent.tell(value, 2.0 * (matrix @ v - value * v))
    >>> round(descent.value, 6), descent.status
    (1.0, 'converged (gradient)')
    """

    def __init__(self, start, curvature=None, *, double tol, double progress, int max_iter):
        self.d = len(start)
        self.tol, self.progress, self.max_iter = tol, progress, max_iter
        self.spacing = spacing_for(tol, self.d)
        memory = np.zeros((5, self.d))
        memory[0] = start
        self.trial, self.point, self.gradient, self.new_gradient, self.tangent = memory
        self.value, self.n_iter, self.spent, self.tries, self.end = INFINITY, -1, 0, 0, RUNNING
        self.steps, self.changes = np.empty((2, PAIRS, self.d))
        self.n_pairs = 0
        if curvature is not None and len(curvature[0]):
            steps, changes = curvature
            self.n_pairs = len(steps)
            np.asarray(self.steps)[: self.n_pairs] = steps
            np.asarray(self.changes)[: self.n_pairs] = changes

    def restart(self):
        """Begin again from where it ended, with the curvature that is known, for another function."""
        memcpy(&self.trial[0], &self.point[0], self.d * sizeof(double))
        self.value, self.n_iter, self.spent, self.tries, self.end = INFINITY, -1, 0, 0, RUNNING

    @property
    def running(self):
        """Whether the descent waits for an evaluation."""
        return self.end == RUNNING

    @property
    def status(self):
        """Why the descent ended."""
        return ENDS[self.end]

    @property
    def direction(self):
        """The direction to evaluate next; at the end, where the descent ended."""
        return np.array(self.trial if self.end == RUNNING else self.point)

    @property
    def end_gradient(self):
        """The gradient where the descent ended."""
        return np.array(self.gradient)

    @property
    def curvature(self):
        """The last steps and the changes of the gradient along them."""
        return np.array(self.steps[: self.n_pairs]), np.array(self.changes[: self.n_pairs])

    def tell(self, double value, const double[::1] gradient):
        """Take the value and the gradient (in the tangent plane) at the direction; return whether it moved there."""
        if not self.accepts(value):
            self.refuse(value)
            return False
        self.new_gradient[:] = gradient
        self.move(value)
        return True

    cdef bint accepts(self, double value) noexcept nogil:
        """Return whether the trial direction is the next point: its value is low enough, or it is the start."""
        return self.n_iter < 0 or value <= self.value + SUFFICIENT * self.length * self.slope

    cdef void refuse(self, double value) noexcept nogil:
        """Shorten the step, to the minimum of the parabola through value and slope here and the trial value."""
        cdef double rise = value - self.value - self.length * self.slope, shorter = 0.0
        if isfinite(rise):
            shorter = -self.slope * self.length * self.length / (2.0 * rise)
        self.length = min(max(shorter, 0.1 * self.length), 0.5 * self.length)
        self.spent += 1
        self.tries -= 1
        self.try_next()

    cdef void move(self, double value) noexcept nogil:
        """Go to the trial direction, where the gradient is `new_gradient`, and propose the next one."""
        cdef double gain = self.value - value
        cdef bint first = self.n_iter < 0
        if not first:
            self.remember()
            self.spent += 1
        self.n_iter += 1
        self.value = value
        memcpy(&self.point[0], &self.trial[0], self.d * sizeof(double))
        memcpy(&self.gradient[0], &self.new_gradient[0], self.d * sizeof(double))
        if not first and gain < self.progress:
            self.end = SMALL_GAIN
        elif sqrt(dot(&self.gradient[0], &self.gradient[0], self.d)) <= self.tol:
            self.end = SMALL_GRADIENT
        else:
            self.propose()

    cdef void propose(self) noexcept nogil:
        """Begin a line search along the quasi-Newton direction, or the steepest descent without curvature."""
        cdef double* tangent = &self.tangent[0]
        cdef const double* gradient = &self.gradient[0]
        cdef Py_ssize_t j
        cdef double factor = -1.0 if self.n_pairs else -FIRST_ANGLE / sqrt(dot(gradient, gradient, self.d))
        for j in range(self.d):
            tangent[j] = factor * gradient[j]
        if self.n_pairs:
            self.apply_curvature()
        subtract(tangent, dot(tangent, &self.point[0], self.d), &self.point[0], self.d)
        self.slope = dot(tangent, gradient, self.d)
        self.angle = sqrt(dot(tangent, tangent, self.d))
        self.length = LARGEST_ANGLE / self.angle if self.angle > LARGEST_ANGLE else 1.0
        self.tries = self.max_iter - self.spent if self.slope < 0.0 else 0
        self.try_next()

    cdef void try_next(self) noexcept nogil:
        """Set the trial direction to the end of the step, unless no try is left."""
        if self.tries <= 0:
            self.fail()
        elif not self.follow():  # the step is shorter than the spacing of the lattice
            self.end = LIMIT if self.spent >= self.max_iter else LOWEST

    cdef void fail(self) noexcept nogil:
        """Search along the steepest descent after a search with curvature, or end."""
        if self.n_pairs and self.spent < self.max_iter:
            self.n_pairs = 0
            self.propose()
        else:
            self.end = LIMIT if self.spent >= self.max_iter else LOWEST

    cdef bint follow(self) noexcept nogil:
        """Set the trial direction to the lattice point next to the end of the step along the great circle.

        Returns whether it is another one than the point.
        """
        cdef double turn = self.length * self.angle, along = sin(turn) / turn * self.length, norm
        cdef bint moved = False
        cdef double* trial = &self.trial[0]
        cdef Py_ssize_t j
        for j in range(self.d):
            trial[j] = cos(turn) * self.point[j] + along * self.tangent[j]
        norm = sqrt(dot(trial, trial, self.d))
        for j in range(self.d):
            trial[j] = rint(trial[j] / norm / self.spacing)
        norm = sqrt(dot(trial, trial, self.d))
        for j in range(self.d):
            trial[j] /= norm
            moved = moved or trial[j] != self.point[j]
        return moved

    cdef void remember(self) noexcept nogil:
        """Keep the pair of this step if it satisfies step . change > 0, instead of the oldest of too many."""
        cdef double* step = &self.tangent[0]
        cdef double* change = &self.gradient[0]
        cdef Py_ssize_t j
        cdef double lengths
        for j in range(self.d):
            step[j] = self.trial[j] - self.point[j]
            change[j] = self.new_gradient[j] - change[j]
        lengths = sqrt(dot(step, step, self.d)) * sqrt(dot(change, change, self.d))
        if not dot(step, change, self.d) > 1e-10 * lengths:
            return
        if self.n_pairs == PAIRS:
            self.n_pairs -= 1
            memmove(&self.steps[0, 0], &self.steps[1, 0], self.n_pairs * self.d * sizeof(double))
            memmove(&self.changes[0, 0], &self.changes[1, 0], self.n_pairs * self.d * sizeof(double))
        memcpy(&self.steps[self.n_pairs, 0], step, self.d * sizeof(double))
        memcpy(&self.changes[self.n_pairs, 0], change, self.d * sizeof(double))
        self.n_pairs += 1

    cdef void apply_curvature(self) noexcept nogil:
        """Multiply the tangent by the inverse Hessian of the pairs, by the two-loop recursion."""
        cdef Py_ssize_t i, j, m = self.n_pairs, d = self.d
        cdef double* x = &self.tangent[0]
        cdef double[PAIRS] share, inverse
        cdef double largest
        for i in range(m - 1, -1, -1):
            inverse[i] = 1.0 / dot(&self.steps[i, 0], &self.changes[i, 0], d)
            share[i] = inverse[i] * dot(&self.steps[i, 0], x, d)
            subtract(x, share[i], &self.changes[i, 0], d)
        largest = inverse[m - 1] * dot(&self.changes[m - 1, 0], &self.changes[m - 1, 0], d)
        for j in range(d):
            x[j] /= largest
        for i in range(m):
            subtract(x, inverse[i] * dot(&self.changes[i, 0], x, d) - share[i], &self.steps[i, 0], d)
