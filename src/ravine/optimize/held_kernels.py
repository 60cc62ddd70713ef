"""Standardized rows in memory and the loops over them, compiled for dense and sparse rows together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ravine._jit import inner
from ravine._validate import FloatArray, IntArray
from ravine.optimize.sphere_kernels import dot

if TYPE_CHECKING:
    from ravine.data.query import AnyArray  # takes long to import: SciPy's sparse matrices


class Rows(NamedTuple):
    """Standardized rows with weights: an array, or a CSR matrix minus a center; the other one is empty.

    The array is held twice, by rows for sums of rows and by columns for projections, which are then sums of
    whole columns: twice as fast, because the processor adds several rows at a time.
    """

    dense: FloatArray
    by_column: FloatArray
    values: FloatArray
    columns: AnyArray
    starts: IntArray
    center: FloatArray
    weights: FloatArray


@inner
def project(rows, v, out):
    """out[i] = v . row i."""
    shift = dot(rows.center, v)
    for i in range(len(rows.starts) - 1):
        total = 0.0
        for k in range(rows.starts[i], rows.starts[i + 1]):
            total += rows.values[k] * v[rows.columns[k]]
        out[i] = total - shift
    x = rows.by_column
    d, n = x.shape
    whole = d - d % 4
    for i in range(n):
        out[i] = 0.0
    for j in range(0, whole, 4):
        a, b, c, e = v[j], v[j + 1], v[j + 2], v[j + 3]
        for i in range(n):
            out[i] += (a * x[j, i] + b * x[j + 1, i]) + (c * x[j + 2, i] + e * x[j + 3, i])
    for j in range(whole, d):
        for i in range(n):
            out[i] += v[j] * x[j, i]


@inner
def weighted_sum(rows, factors, out):
    """out = sum of factors[i] row i."""
    for j in range(len(out)):
        out[j] = 0.0
    x = rows.dense
    n, d = x.shape
    whole = n - n % 4
    for i in range(0, whole, 4):  # four rows at a time: `out` is read and written less often
        a, b, c, e = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        for j in range(d):
            out[j] += (a * x[i, j] + b * x[i + 1, j]) + (c * x[i + 2, j] + e * x[i + 3, j])
    for i in range(whole, n):
        for j in range(d):
            out[j] += factors[i] * x[i, j]
    total = 0.0
    for i in range(len(rows.starts) - 1):
        f = factors[i]
        if f != 0.0:
            total += f
            for k in range(rows.starts[i], rows.starts[i + 1]):
                out[rows.columns[k]] += f * rows.values[k]
    for j in range(len(rows.center)):
        out[j] -= total * rows.center[j]
