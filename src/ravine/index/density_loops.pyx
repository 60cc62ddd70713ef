"""The minimum density index over a profile.

I is the density, Q the penalty outside of the interval, P the penalty of labels, and F = I + Q + P.

Densities are taken in logarithms about the nearest point, so that a threshold many bandwidths away from any
mass still has a density to compare: that is what lets the bandwidth shrink until the widest margin is found.
"""

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, NAN, ceil, copysign, exp, fabs, isinf, log, log1p, sqrt
from libc.stdlib cimport free, malloc

from ravine.index.line cimport MAX_NEWTON_STEPS, Labels, LineFunction, label_penalty, lowest_penalty, newton

cdef extern from "../data/wide.h" nogil:
    void wide_add_terms(double* e, double* r, double shrink, Py_ssize_t m, double* out)

cdef double FARTHEST = 1e100  # bandwidths: largest half-width of the interval, so that squares of distances are finite
cdef double ROOT_TWO_PI = sqrt(2.0 * 3.141592653589793)
cdef double FAR = 80.0  # squared bandwidths: a term exp(-FAR / 2) = 4e-18 below the largest is lost in rounding
cdef enum: STRETCH = 64  # thresholds whose sums are taken together, at most 16 bandwidths wide
cdef double WITHIN = 37.0  # bandwidths: exp(-WITHIN^2 / 2) = 5e-298, before products of terms become subnormal
# share of the mass: a smaller sum may lack points 21 bandwidths away (1e-96): use logarithms
cdef double LEAST_SUM = 1e-90
cdef double CLOSE = 0.1  # log density: coarse minima this close to the lowest may be lower after Newton's method
cdef enum:
    MAX_GRID = 4096  # thresholds: where more are needed, single points are seen and make the grid; a choice
    FOOT_STEPS = 8  # steps per overshoot, and at most one more of them, on the way to the foot of a valley
cdef double SETTLED = 1e-9  # bandwidths: a Newton step shorter than this is the last


# --- the density ---


cdef Py_ssize_t first_right(const double* points, Py_ssize_t n, double b) noexcept nogil:
    """Return the number of points left of b, by bisection."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if points[middle] < b:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline double nearest(const Line* line, double b, Py_ssize_t right) noexcept nogil:
    """Return the squared distance of the point nearest to b in bandwidths; `right` points are left of b."""
    cdef double ahead = line.points[right] - b if right < line.n else INFINITY
    cdef double behind = b - line.points[right - 1] if right > 0 else INFINITY
    cdef double distance = (ahead if ahead < behind else behind) / line.h
    return distance * distance


cdef (double, double, double) log_density(const Line* line, double b) noexcept nogil:
    """Return log I(b), and I'(b) / I(b), I''(b) / I(b).

    The terms mass exp((least - u^2) / 2) times 1, u, u^2, with u = (b - t) / h, are added outwards from b on
    both sides until they are lost in rounding.
    """
    cdef Py_ssize_t j, right = first_right(line.points, line.n, b)
    cdef double u, e, s0 = 0.0, s1 = 0.0, s2 = 0.0, h = line.h, least = nearest(line, b, right)
    if least == INFINITY:
        return -INFINITY, 0.0, 0.0
    for j in range(right, line.n):
        u = (b - line.points[j]) / h
        if u * u - least > FAR:
            break
        e = line.mass[j] * exp(-0.5 * (u * u - least))
        s0 += e
        s1 += u * e
        s2 += u * u * e
    for j in range(right - 1, -1, -1):
        u = (b - line.points[j]) / h
        if u * u - least > FAR:
            break
        e = line.mass[j] * exp(-0.5 * (u * u - least))
        s0 += e
        s1 += u * e
        s2 += u * u * e
    return (
        log(s0 / (line.total * h * ROOT_TWO_PI)) - 0.5 * least,
        -s1 / (s0 * h),
        (s2 / s0 - 1.0) / (h * h) if h * h > 0.0 else INFINITY,
    )


cdef void density_sums(const Line* line, double first, double step, double* out, Py_ssize_t m) noexcept nogil:
    """Fill out[k] with the sum of mass exp(-(b_k - t)^2 / 2h^2) at b_k = first + k step, step <= h / 4.

    From one b_k to the next a term changes by a factor that itself shrinks by a constant factor: two
    exponentials per point and stretch of thresholds, and two products per pair. Four points at a time,
    because each product waits for the one before. Points beyond WITHIN are left out: see LEAST_SUM.
    """
    cdef Py_ssize_t i, j, k, begin = 0, end, near = 0, n = line.n
    cdef double h = line.h, low, high, u
    cdef double half = exp(-0.5 * (step / h) * (step / h))
    cdef double shrink = half * half
    cdef double[4] e, r
    for k in range(m):
        out[k] = 0.0
    while begin < m:
        end = begin + STRETCH if begin + STRETCH < m else m
        low = first + begin * step
        high = first + (end - 1) * step
        while near < n and high - line.points[near] > WITHIN * h:
            near += 1
        j = near
        while j < n and line.points[j] - low <= WITHIN * h:
            for i in range(4):
                e[i] = r[i] = 0.0
                if j < n:
                    u = (low - line.points[j]) / h
                    e[i] = line.mass[j] * exp(-0.5 * u * u)
                    r[i] = exp(-u * (step / h)) * half
                    j += 1
            wide_add_terms(e, r, shrink, end - begin, out + begin)
        begin = end


# --- the penalties ---


cdef (double, double) interval_penalty(const Line* line, double b) noexcept nogil:
    """Return the excess of b over the interval with its sign, and log Q, Q = (L / eta) excess^2."""
    cdef double h = line.h, excess = 0.0
    if b > line.half:
        excess = b - line.half
    elif b < -line.half:
        excess = b + line.half
    if excess == 0.0:
        return 0.0, -INFINITY
    return excess, 2.0 * log(fabs(excess)) - log(line.eta * h * h * ROOT_TWO_PI) - 0.5


cdef inline (double, double) add_logs(double log_f, double log_p) noexcept nogil:
    """Return log(f + p) and the share f / (f + p)."""
    cdef double gap = log_p - log_f, small = exp(-fabs(log_p - log_f))
    if gap > 0.0:
        return log_p + log1p(small), small / (1.0 + small)
    return log_f + log1p(small), 1.0 / (1.0 + small)


cdef Objective objective(const Line* line, const Labels* labels, double b) noexcept nogil:
    """Return log F(b), its derivatives and shares; without labels P is left out."""
    cdef Objective f
    cdef double excess, log_q, share, p, p1, p2
    f.value, f.first, f.second = log_density(line, b)
    f.density, f.outside = 1.0, 0.0
    excess, log_q = interval_penalty(line, b)
    if excess != 0.0:
        f.value, f.density = add_logs(f.value, log_q)
        f.outside = 1.0 - f.density
        f.first = f.density * f.first + f.outside * 2.0 / excess
        f.second = f.density * f.second + f.outside * 2.0 / (excess * excess)
    if labels != NULL:
        p, p1, p2 = label_penalty(labels, b)
        if p > 0.0:
            f.value, share = add_logs(f.value, log(p))
            f.first = share * f.first + (1.0 - share) * p1 / p
            f.second = share * f.second + (1.0 - share) * p2 / p
            f.density *= share
            f.outside *= share
    return f


# --- the lowest threshold ---


cdef Py_ssize_t grid_at_points(const double* points, Py_ssize_t n, double low, double high, double* grid) noexcept nogil:
    """Fill low, high, and between them all points and the middles of neighboring points; return their number.

    A bandwidth far smaller than the range of the points has its modes and valleys there, and the number of
    thresholds does not depend on it: at most 2 n + 3.
    """
    cdef Py_ssize_t k, first = first_right(points, n, low), last = first_right(points, n, high), size = 1
    cdef double middle
    while first < n and points[first] == low:
        first += 1
    grid[0] = low
    for k in range(first, last + 1):
        if 0 < k and k < n:
            middle = points[k - 1] / 2.0 + points[k] / 2.0
            if low < middle and middle < high:
                grid[size] = middle
                size += 1
        if k < last:
            grid[size] = points[k]
            size += 1
    grid[size] = high
    return size + 1


cdef bint make_curve(const Line* line, const Labels* labels, double low, double high, Curve* curve) noexcept nogil:
    """Fill a coarse grid from low to high and log F there; return whether there was memory for it.

    The grid has steps of at most h / 4, or lies at the points and in the middle of their gaps.
    """
    cdef Py_ssize_t k, m
    curve.even = PER_BANDWIDTH * (high - low) <= MAX_GRID * line.h
    if not curve.even:
        m = 2 * line.n + 3
    else:
        # a whole number of steps stays one in spite of rounding
        m = <Py_ssize_t> ceil(PER_BANDWIDTH * (high - low) / line.h * (1.0 - 1e-12)) + 1
    curve.grid = <double*> malloc(2 * m * sizeof(double))
    if curve.grid == NULL:
        return False
    curve.values = curve.grid + m
    curve.n, curve.step = m, line.h / 2.0
    if not curve.even:
        curve.n = grid_at_points(line.points, line.n, low, high, curve.grid)
    else:
        if m > 1:
            curve.step = (high - low) / (m - 1)
        for k in range(m):
            curve.grid[k] = low + curve.step * k
    fill_values(line, labels, curve)
    return True


cdef void fill_values(const Line* line, const Labels* labels, Curve* curve) noexcept nogil:
    """Fill log F at the thresholds of a grid, from sums of many at once where these do not underflow."""
    cdef double unit = line.total * line.h * ROOT_TWO_PI, density
    cdef bint summed = curve.even and curve.n > 1
    cdef Py_ssize_t k
    if summed:
        density_sums(line, curve.grid[0], curve.step, curve.values, curve.n)
    for k in range(curve.n):
        if not summed or not curve.values[k] > LEAST_SUM * line.total:
            curve.values[k] = objective(line, labels, curve.grid[k]).value
            continue
        density = curve.values[k] / unit
        if labels != NULL:  # the least P may be outside of the interval
            density += exp(interval_penalty(line, curve.grid[k])[1]) + label_penalty(labels, curve.grid[k])[0]
        curve.values[k] = log(density)


cdef double settle(
    const Line* line, const Labels* labels, double left, double b, double right, Objective* found
) noexcept nogil:
    """Return the minimizer of F between left and right, and `objective` there: Newton's steps, or halving.

    Where P begins at b the second derivative jumps, and Newton's steps may end higher than they began.
    """
    cdef double start = b, before
    cdef Objective first = objective(line, labels, b)
    cdef int k
    found[0] = first
    for k in range(MAX_NEWTON_STEPS):
        before = b
        left, b, right = newton(left, b, right, found.first, found.second)
        # In a wide gap all of Newton's steps are short, so the late ones alternate with halvings of the bracket.
        if k >= MAX_NEWTON_STEPS // 2 and k % 2 == 0:
            b = left / 2.0 + right / 2.0
        found[0] = objective(line, labels, b)
        if fabs(b - before) <= SETTLED * line.h:
            break
    if labels != NULL and first.value < found.value:
        found[0] = first
        return start
    return b


cdef double vertex(const double* grid, const double* values, Py_ssize_t k) noexcept nogil:
    """Return the vertex of the parabola through the values at a coarse minimum and beside it."""
    cdef double before = grid[k] - grid[k - 1], after = grid[k + 1] - grid[k]
    cdef double rise = (values[k - 1] - values[k]) / before, fall = (values[k + 1] - values[k]) / after
    cdef double both = rise + fall  # both are at least 0
    if not both > 0.0 or isinf(both):
        return grid[k]
    return grid[k] + 0.5 * (rise * after - fall * before) / both


cdef double lowest(const Line* line, const Labels* labels, Objective* best) noexcept nogil:
    """Return the threshold with the least F, and `objective` there.

    It is the best of all coarse minima close to the lowest, each settled. Q and P are convex, so the least F
    lies in the interval, or between it and the least P. The slope of Q exceeds the steepest slope of I from
    eta / 2 on, so that eta is as far as a minimum can lie outside.
    """
    cdef Curve curve
    cdef Objective found
    cdef Py_ssize_t k, last
    cdef double bound = INFINITY, threshold = 0.0, b, left, right, low = -line.half, high = line.half
    best.value, best.first, best.second, best.density, best.outside = INFINITY, 0.0, 0.0, 1.0, 0.0
    if labels != NULL:
        b = lowest_penalty(labels)[0]
        low, high = min(low, b), max(high, b)
    if not make_curve(line, labels, low, high, &curve):
        return threshold
    last = curve.n - 1
    for k in range(curve.n):
        bound = min(bound, curve.values[k] + CLOSE)
    for k in range(curve.n):
        if curve.values[k] > bound:
            continue
        if (k > 0 and curve.values[k - 1] < curve.values[k]) or (k < last and curve.values[k + 1] < curve.values[k]):
            continue
        b = curve.grid[k]
        left = b - (curve.step if k > 0 else line.eta)
        right = b + (curve.step if k < last else line.eta)
        if 0 < k and k < last:
            b = vertex(curve.grid, curve.values, k)
        elif labels == NULL and last > 0:  # F falls outwards: begin where Q rises at least as fast as I can fall
            b += line.eta / 2.0 if k == last else -line.eta / 2.0
        b = settle(line, labels, left, b if left < b and b < right else curve.grid[k], right, &found)
        if found.value < best.value:
            threshold = b
            best[0] = found
    free(curve.grid)
    return threshold


cdef void fill_slope(const Line* line, double b, double share, double* slope) noexcept nogil:
    """slope[j] = d log F / d t_j = share * mass_j (b - t_j) phi_h(b - t_j) / (h^2 sum of mass phi_h)."""
    cdef double least = nearest(line, b, first_right(line.points, line.n, b)), total = 0.0, u, e
    cdef Py_ssize_t j
    for j in range(line.n):
        u = (b - line.points[j]) / line.h
        slope[j] = 0.0
        if u * u - least <= FAR:
            e = line.mass[j] * exp(-0.5 * (u * u - least))
            total += e
            slope[j] = u * e
    for j in range(line.n):
        slope[j] *= share / (total * line.h)


cdef (double, double) minimize(const Line* line, const Labels* labels, double* slope, double* out) noexcept nogil:
    """Minimize log F over the threshold; fill `slope` with its derivative by each point.

    Writes the value, the threshold, and the derivative by `half`. Returns how far the threshold is outside of
    the interval, and the second derivative of F over F there.
    """
    cdef Objective best
    cdef double excess, b = lowest(line, labels, &best)
    fill_slope(line, b, best.density, slope)
    excess = interval_penalty(line, b)[0]
    out[0], out[1] = best.value, b
    out[2] = 0.0 if excess == 0.0 else -best.outside * 2.0 / fabs(excess)
    return excess, best.second


cdef Line line_of(
    const double* points, const double* mass, Py_ssize_t n, double total, double std, const double* parameters
) noexcept nogil:
    """Return the line of a profile; the parameters are bandwidth, alpha, eta and overshoot."""
    cdef Line line
    cdef double h = parameters[0]
    line.points, line.mass, line.n, line.total, line.h = points, mass, n, total, h
    line.half = INFINITY if isinf(parameters[1]) else min(parameters[1] * std, FARTHEST * h)
    line.eta = parameters[2] * h
    return line


cdef void minimum(
    const double* points, const double* mass, Py_ssize_t n, double total, double std,
    const double* parameters, bint final, double* slope, double* out,
) noexcept nogil:
    """Minimize log F over the threshold, without labels: a `LineFunction`.

    A threshold at the edge of the interval is valid if the foot of the valley is at most `overshoot`
    bandwidths away. Whether it is takes some time, and is looked up only if this call is `final`.
    """
    cdef Line line = line_of(points, mass, n, total, std, parameters)
    cdef double excess, bend
    excess, bend = minimize(&line, NULL, slope, out)
    out[2] = parameters[1] * out[2] if out[2] != 0.0 else 0.0  # alpha may be infinite
    if excess == 0.0:
        out[3] = 1.0 if bend > 0.0 else 0.0
    elif parameters[3] == 0.0:
        out[3] = 0.0
    elif not final:
        out[3] = NAN
    else:
        out[3] = slide(&line, &out[1], copysign(parameters[3] * line.h / FOOT_STEPS, excess))


MINIMUM = PyCapsule_New(<void*> <LineFunction> minimum, "ravine.LineFunction", NULL)


cdef double slide(Line* line, double* threshold, double step) noexcept nogil:
    """Look for the foot of the valley in a few steps beyond a threshold at the edge of the interval.

    By default they add up to one bandwidth, which is what the density can resolve: a valley whose foot is
    closer than that to the edge has been found. Returns 1 if there is one, else 0; the threshold becomes the
    foot.
    """
    cdef double b = threshold[0], before = log_density(line, b)[0], now, middle
    cdef Objective found
    cdef Line free_line = line[0]
    cdef int k
    for k in range(1, FOOT_STEPS + 2):
        now = log_density(line, b + k * step)[0]
        if now > before:
            if k == 1:
                break
            middle = b + (k - 1) * step
            free_line.half = INFINITY
            threshold[0] = settle(&free_line, NULL, middle - fabs(step), middle, middle + fabs(step), &found)
            return 1.0
        before = now
    return 0.0
