"""What compiled indices share: how searches call them, Newton's method in a bracket, the penalty of labels."""

from libc.math cimport INFINITY

# Fills `slope` and out = (value, threshold, d_std, valid) of a profile of n points, see `IndexValue`. If it
# takes long to find out whether the threshold is valid, it may answer NaN unless the call is `final`.
ctypedef void (*LineFunction)(
    const double* points, const double* mass, Py_ssize_t n, double total, double std,
    const double* parameters, bint final, double* slope, double* out,
) noexcept nogil


cdef enum: MAX_NEWTON_STEPS = 60  # halvings alone shrink a bracket by 2^60, which is below rounding


cdef struct Labels:  # labeled rows on the line: points, sides (-1 or 1), penalty per squared length
    const double* points
    const double* sides
    const double* strength
    Py_ssize_t n


cdef (double, double, double) label_penalty(const Labels* labels, double threshold) noexcept nogil
cdef (double, double) lowest_penalty(const Labels* labels) noexcept nogil
cdef Labels place_labels(placed) except *


cdef inline (double, double, double) newton(double left, double b, double right, double first, double second) noexcept nogil:
    """Return the bracket of a minimizer after the derivatives at b, and Newton's next b, or the middle.

    At the minimizer itself b stays: whether a step lands on it or next to it is a matter of rounding.
    """
    cdef double next = b - first / second if second > 0.0 else INFINITY
    if first > 0.0:
        right = b
    else:
        left = b
    if next != b and not (left < next and next < right):
        next = left / 2.0 + right / 2.0
    return left, next, right
