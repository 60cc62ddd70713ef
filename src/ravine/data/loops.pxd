"""What other compiled modules use of the loops over blocks."""


cdef inline double centered_dot(const double* x, const double* pivot, const double* direction, Py_ssize_t d) noexcept nogil:
    """Return direction . (x - pivot), in four partial sums: the order of every dense projection."""
    cdef Py_ssize_t j, whole = d - d % 4
    cdef double a0 = 0.0, a1 = 0.0, a2 = 0.0, a3 = 0.0
    for j in range(0, whole, 4):
        a0 += (x[j] - pivot[j]) * direction[j]
        a1 += (x[j + 1] - pivot[j + 1]) * direction[j + 1]
        a2 += (x[j + 2] - pivot[j + 2]) * direction[j + 2]
        a3 += (x[j + 3] - pivot[j + 3]) * direction[j + 3]
    for j in range(whole, d):
        a0 += (x[j] - pivot[j]) * direction[j]
    return (a0 + a1) + (a2 + a3)


cdef inline Py_ssize_t bin_of(double point, double low, double inverse, Py_ssize_t last) noexcept nogil:
    """Return the bin of a point; points beyond the grid are in the outer bins."""
    cdef double place = (point - low) * inverse
    if place <= 0.0:
        return 0
    if place >= last:
        return last
    return <Py_ssize_t> place
