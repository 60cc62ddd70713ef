"""A compiled index, called from Python, and the penalty of labeled rows on the wrong side of a threshold."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, fabs


def evaluate(
    capsule, const double[::1] points, const double[::1] mass, double total, double std,
    const double[::1] parameters, double[::1] slope,
):
    """Fill `slope`; return value, threshold, derivative by the deviation, and whether the threshold is valid."""
    cdef LineFunction function = <LineFunction> PyCapsule_GetPointer(capsule, "ravine.LineFunction")
    cdef double[4] out
    with nogil:
        function(&points[0], &mass[0], points.shape[0], total, std, &parameters[0], True, &slope[0], out)
    return out[0], out[1], out[2], out[3] > 0.0


cdef (double, double, double) label_penalty(const Labels* labels, double threshold) noexcept nogil:
    """Return P(b), the sum of strength max(0, -side (t - b))^2, and its first two derivatives by b."""
    cdef double wrong, pull, value = 0.0, first = 0.0, second = 0.0
    cdef Py_ssize_t i
    for i in range(labels.n):
        wrong = labels.sides[i] * (threshold - labels.points[i])
        if wrong > 0.0:
            pull = labels.strength[i] * wrong
            value += pull * wrong
            first += 2.0 * labels.sides[i] * pull
            second += 2.0 * labels.strength[i]
    return value, first, second


cdef (double, double) lowest_penalty(const Labels* labels) noexcept nogil:
    """Return the minimizer of the convex P, and P there; the middle of all minimizers if P can be 0."""
    cdef double left = INFINITY, right = -INFINITY, threshold, before, first, second
    cdef Py_ssize_t i
    for i in range(labels.n):
        if labels.sides[i] > 0.0:
            left = min(left, labels.points[i])
        else:
            right = max(right, labels.points[i])
    threshold = left / 2.0 + right / 2.0
    if right <= left:
        return threshold, 0.0
    for i in range(MAX_NEWTON_STEPS):
        _, first, second = label_penalty(labels, threshold)
        before = threshold
        left, threshold, right = newton(left, threshold, right, first, second)
        if fabs(threshold - before) <= 1e-12 * (fabs(left) + fabs(right)):
            break
    return threshold, label_penalty(labels, threshold)[0]


cdef Labels place_labels(placed) except *:
    """Return pointers to `PlacedLabels`, which have to live as long."""
    cdef const double[::1] points = placed[0], sides = placed[1], strength = placed[2]
    cdef Labels labels
    labels.n = points.shape[0]
    labels.points, labels.sides, labels.strength = &points[0], &sides[0], &strength[0]
    return labels


def penalty_of_labels(labels, double threshold):
    """Return P at a threshold, and its first two derivatives."""
    cdef Labels placed = place_labels(labels)
    return label_penalty(&placed, threshold)


def lowest_label_penalty(labels):
    """Return the minimizer of P, and P there; the middle of all minimizers if P can be 0."""
    cdef Labels placed = place_labels(labels)
    return lowest_penalty(&placed)


def newton_step(double left, double b, double right, double first, double second):
    """Return the bracket of a minimizer after the derivatives at b, and Newton's next b, or the middle."""
    return newton(left, b, right, first, second)
