"""What the valleys of a profile (`density_valleys.pyx`) use of the minimum density index."""

from ravine.index.line cimport Labels

cdef enum: PER_BANDWIDTH = 4  # thresholds of a coarse grid; a choice: twice as many lower 2 of 32 000 values


cdef struct Line:  # a profile, the bandwidth h, and the interval [-half, half] beyond which Q grows with 1 / eta
    const double* points
    const double* mass
    Py_ssize_t n
    double total
    double h
    double half
    double eta


cdef struct Curve:  # a coarse grid, log F there, how far from a threshold a minimum may be, whether steps are equal
    double* grid
    double* values
    Py_ssize_t n
    double step
    bint even


cdef struct Objective:  # log F, F'/F, F''/F and the shares I/F and Q/F
    double value
    double first
    double second
    double density
    double outside


cdef Py_ssize_t first_right(const double* points, Py_ssize_t n, double b) noexcept nogil
cdef (double, double, double) log_density(const Line* line, double b) noexcept nogil
cdef void density_sums(const Line* line, double first, double step, double* out, Py_ssize_t m) noexcept nogil
cdef Objective objective(const Line* line, const Labels* labels, double b) noexcept nogil
cdef bint make_curve(const Line* line, const Labels* labels, double low, double high, Curve* curve) noexcept nogil
cdef double settle(
    const Line* line, const Labels* labels, double left, double b, double right, Objective* found
) noexcept nogil
cdef (double, double) minimize(const Line* line, const Labels* labels, double* slope, double* out) noexcept nogil
cdef Line line_of(
    const double* points, const double* mass, Py_ssize_t n, double total, double std, const double* parameters
) noexcept nogil
