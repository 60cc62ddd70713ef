"""What compiled searches use of a descent: they evaluate the trial direction, and tell what they found."""


cdef double dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
cdef void subtract(double* x, double factor, const double* y, Py_ssize_t n) noexcept nogil


cdef class Descent:
    cdef readonly double value, tol, progress, spacing
    cdef readonly int n_iter, max_iter
    cdef Py_ssize_t d, n_pairs
    cdef int spent, tries, end
    cdef double slope, angle, length
    cdef double[::1] trial, point, gradient, new_gradient, tangent
    cdef double[:, ::1] steps, changes

    cdef bint accepts(self, double value) noexcept nogil
    cdef void refuse(self, double value) noexcept nogil
    cdef void move(self, double value) noexcept nogil
    cdef void propose(self) noexcept nogil
    cdef void fail(self) noexcept nogil
    cdef void try_next(self) noexcept nogil
    cdef bint follow(self) noexcept nogil
    cdef void remember(self) noexcept nogil
    cdef void apply_curvature(self) noexcept nogil
