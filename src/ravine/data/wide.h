/* The hottest loops, also compiled for the wider vectors of newer processors.
 *
 * Which version runs is decided when the module is loaded. All have the same bits: products are not fused
 * (-ffp-contract=off), and every number is added in the same order. Elsewhere than with gcc and glibc on x86-64
 * there is one version.
 */
#ifndef RAVINE_WIDE_H
#define RAVINE_WIDE_H

#include <stddef.h>
#include <stdlib.h> /* defines __GLIBC__ */

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#if defined(_MSC_VER)
#define restrict __restrict
#endif

#define PART 1024 /* rows whose sums stay in the first cache */

/* out[i] = v . row i, for n rows that are stored by columns. */
WIDE static void wide_project(const double *restrict x, const double *restrict v, ptrdiff_t n, ptrdiff_t d,
                              double *restrict out)
{
    ptrdiff_t whole = d - d % 4;
    for (ptrdiff_t a = 0; a < n; a += PART) {
        ptrdiff_t m = n - a < PART ? n - a : PART;
        double *restrict y = out + a;
        for (ptrdiff_t i = 0; i < m; i++)
            y[i] = 0.0;
        for (ptrdiff_t j = 0; j < whole; j += 4) {
            const double *restrict p = x + j * n + a, *restrict q = p + n, *restrict r = q + n, *restrict s = r + n;
            double e = v[j], f = v[j + 1], g = v[j + 2], h = v[j + 3];
            for (ptrdiff_t i = 0; i < m; i++)
                y[i] += (e * p[i] + f * q[i]) + (g * r[i] + h * s[i]);
        }
        for (ptrdiff_t j = whole; j < d; j++) {
            const double *restrict p = x + j * n + a;
            for (ptrdiff_t i = 0; i < m; i++)
                y[i] += v[j] * p[i];
        }
    }
}

/* out += sum of factors[i] row i, for n rows; four at a time, so that `out` is read and written less often. */
WIDE static void wide_weighted_sum(const double *restrict x, const double *restrict factors, ptrdiff_t n,
                                   ptrdiff_t d, double *restrict out)
{
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *restrict p = x + i * d, *restrict q = p + d, *restrict r = q + d, *restrict s = r + d;
        double e = factors[i], f = factors[i + 1], g = factors[i + 2], h = factors[i + 3];
        for (ptrdiff_t j = 0; j < d; j++)
            out[j] += (e * p[j] + f * q[j]) + (g * r[j] + h * s[j]);
    }
    for (; i < n; i++)
        for (ptrdiff_t j = 0; j < d; j++)
            out[j] += factors[i] * x[i * d + j];
}

/* out[k] += the sum of four terms, each of which changes by a ratio that shrinks, for m thresholds. */
WIDE static void wide_add_terms(double *restrict e, double *restrict r, double shrink, ptrdiff_t m,
                                double *restrict out)
{
    double e0 = e[0], e1 = e[1], e2 = e[2], e3 = e[3], r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
    for (ptrdiff_t k = 0; k < m; k++) {
        out[k] += (e0 + e1) + (e2 + e3);
        e0 *= r0, e1 *= r1, e2 *= r2, e3 *= r3;
        r0 *= shrink, r1 *= shrink, r2 *= shrink, r3 *= shrink;
    }
}

/* out[i] = direction . (row i - pivot), in four partial sums, which a vector holds. */
WIDE static void wide_centered_dots(const double *restrict x, const double *restrict pivot,
                                    const double *restrict direction, ptrdiff_t n, ptrdiff_t d, double *restrict out)
{
    ptrdiff_t whole = d - d % 4;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *restrict row = x + i * d;
        double a[4] = {0.0, 0.0, 0.0, 0.0};
        for (ptrdiff_t j = 0; j < whole; j += 4)
            for (int k = 0; k < 4; k++)
                a[k] += (row[j + k] - pivot[j + k]) * direction[j + k];
        for (ptrdiff_t j = whole; j < d; j++)
            a[0] += (row[j] - pivot[j]) * direction[j];
        out[i] = (a[0] + a[1]) + (a[2] + a[3]);
    }
}

/* sums[groups[i]] += weights[i] (row i - pivot), for n rows. */
WIDE static void wide_group_sums(const double *restrict x, const double *restrict pivot,
                                 const double *restrict weights, const long long *restrict groups, ptrdiff_t n,
                                 ptrdiff_t d, double *restrict sums)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict sum = sums + groups[i] * d, w = weights[i];
        const double *restrict row = x + i * d;
        for (ptrdiff_t j = 0; j < d; j++)
            sum[j] += w * (row[j] - pivot[j]);
    }
}

/* first += w z, second += w z^2 with z = scale (x - pivot), and low and high by column, for n rows.
 *
 * Rows of weight 0 are left out, but `missing` becomes NaN in the columns where any row is not finite. */
WIDE static void wide_moments(const double *restrict x, const double *restrict pivot, const double *restrict scale,
                              const double *restrict weights, ptrdiff_t n, ptrdiff_t d, double *restrict first,
                              double *restrict second, double *restrict low, double *restrict high,
                              double *restrict missing)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *restrict row = x + i * d;
        double w = weights[i];
        for (ptrdiff_t j = 0; j < d; j++)
            missing[j] += row[j] - row[j];
        if (w > 0.0)
            for (ptrdiff_t j = 0; j < d; j++) {
                double v = row[j], z = scale[j] * (v - pivot[j]);
                first[j] += w * z;
                second[j] += w * z * z;
                low[j] = v < low[j] ? v : low[j];
                high[j] = v > high[j] ? v : high[j];
            }
    }
}

#endif
