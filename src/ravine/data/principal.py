"""Principal directions of standardized rows, with explicit rules for ties, which rounding would decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.node import Node, sample, sample_rows
from ravine.data.query import Additive, Answer, Query
from ravine.data.sample import Sample
from ravine.data.standardization import Standardization

FULL_COVARIANCE = 256  # columns up to which the covariance matrix is formed; above, power iterations
POWER_ROUNDS = 12  # power iterations, one pass each
FULL_ROUNDS = 2  # power iterations on all rows of a large node, after those on a sample
POWER = "power iterations"  # the purpose of the random numbers of the rows from which they start
EQUAL = 1e-6  # relative difference below which variances, components or distances are a tie; a choice


@dataclass(frozen=True)
class Covariance(Additive):
    """Request for the weighted second moments of the standardized rows, a (d, d) matrix."""

    standardization: Standardization

    def start(self, n_features: int) -> Answer:
        return (np.zeros((n_features, n_features)),)

    def add(self, block: Block, answer: Answer) -> None:
        (matrix,) = answer
        standardized = self.standardization.apply(block.dense())
        matrix += standardized.T @ (standardized * block.weights[:, None])


@dataclass(frozen=True)
class CovarianceTimes(Additive):
    """Request for the weighted second moments of the standardized rows times k directions: (k, d)."""

    standardization: Standardization
    directions: FloatArray

    def start(self, n_features: int) -> Answer:
        return (np.zeros((len(self.directions), n_features)),)

    def add(self, block: Block, answer: Answer) -> None:
        own, (total,) = self.standardization, answer
        points = block.product(own.mean, own.normals(self.directions))
        total += block.weighted_sums(own.mean, points * block.weights)


@dataclass(frozen=True)
class Principal:
    """Principal directions of standardized rows, strongest first, with the standard deviation along each.

    `scatter` is the total weighted squared distance of the rows from their mean.
    """

    directions: FloatArray
    deviations: FloatArray
    scatter: float


def principal(node: Node, n_directions: int) -> Query[Principal]:
    """Find the strongest principal directions: exactly up to 256 features, above by power iterations.

    Costs one pass with a (d, d) matrix, or twelve passes with `n_directions + 4` vectors: those of a large
    node are passes over a sample, and two over all rows. The sign of each
    direction is fixed: its largest component is positive. Power iterations start from sampled rows instead of
    random numbers per column, so that mirroring or permuting columns does the same to the result.
    """
    own = node.standardization
    if node.n_features <= FULL_COVARIANCE:
        ((matrix,),) = yield node.ask(Covariance(own))
        scatter = float(np.trace(matrix))
        values, vectors = np.linalg.eigh(matrix / own.total)
        values, vectors = values[::-1], turn_to_axes(values[::-1], vectors[:, ::-1].T)
    else:
        scatter = own.total * float(np.sum((own.inverse_scale * own.deviation) ** 2))
        values, basis = yield from _power_iterations(node, n_directions + 4)
        vectors = basis / np.maximum(np.linalg.norm(basis, axis=1, keepdims=True), np.finfo(float).tiny)
    k = min(n_directions, len(values))
    return Principal(
        np.array([fix_sign(v) for v in vectors[:k]]),
        np.sqrt(np.maximum(values[:k], 0.0)),
        scatter,
    )


def power_samples(node: Node) -> list[Sample]:
    """Return the samples that `principal` asks for on a large node."""
    if node.n_features <= FULL_COVARIANCE or node.is_local or not node.sample_sizes:
        return []
    return [node.sample_request(node.sample_sizes[-1], POWER)]


def _power_iterations(node: Node, n: int) -> Query[tuple[FloatArray, FloatArray]]:
    """Return n principal variances, the largest first, and vectors along the directions."""
    own, rounds = node.standardization, POWER_ROUNDS
    if draws := power_samples(node):
        few = yield from sample(node, draws[0].n, POWER)
        _, basis = yield from _power_iterations(few, n)
        rounds = FULL_ROUNDS
    else:
        rows, _ = yield from sample_rows(node, n, POWER)
        basis = own.apply(rows)
    for _ in range(rounds):
        basis = np.linalg.qr(basis.T)[0].T
        ((product,),) = yield node.ask(CovarianceTimes(own, basis))
        product *= own.inverse_scale / own.total
        values, mix = np.linalg.eigh(basis @ product.T)
        basis = mix[:, ::-1].T @ product
    return values[::-1], basis


def turn_to_axes(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return eigenvectors (in rows, by decreasing eigenvalue) with a fixed basis for repeated eigenvalues.

    Any basis of an eigenspace of dimension above 1 is valid, and rounding would choose one. This one depends
    on the columns only: its first vector is the projection on the space of the column (unit vector) that lies
    most in it; the next ones follow by the same rule in the orthogonal complement.
    """
    turned = vectors.copy()
    apart = values[:-1] - values[1:] > EQUAL * max(float(values[0]), 0.0)
    for group in np.split(np.arange(len(values)), np.flatnonzero(apart) + 1):
        if len(group) == 1 or values[group[0]] <= EQUAL * values[0]:
            continue  # unique up to its sign, or noise that no caller uses
        space = vectors[group]
        for k in group:
            inside = (space**2).sum(axis=0)  # squared length of the projection of every column on the space
            axis = first_largest(inside)
            turned[k] = space[:, axis] @ space / np.sqrt(inside[axis])
            space = space - np.outer(space @ turned[k], turned[k])
    return turned


def first_largest(values: FloatArray) -> int:
    """Return the place of the largest value; among values that are equal up to rounding, the first."""
    return int(np.argmax(values >= (1.0 - EQUAL) * values.max()))


def fix_sign(direction: FloatArray) -> FloatArray:
    """Return the direction or its negative: the one whose largest component is positive."""
    return direction if direction[first_largest(np.abs(direction))] >= 0 else -direction
