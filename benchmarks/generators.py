"""Generated mixtures of many shapes, for the choice of defaults: no real set is needed, and no two are alike.

Every set is drawn from its name and a seed: the number of rows, columns and classes, the sizes of the
classes, their shape, and how far apart they are. `generated(seed)` has one dense set per kind, `topics(seed)`
a few sparse ones, like text.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]
Generator = np.random.Generator
FEWEST = 30  # rows per class, at least


def sizes(rng: Generator, k: int, evenness: float) -> Array:
    """Return the numbers of rows of k classes; a smaller evenness makes them more unequal."""
    n = int(rng.integers(80, 250)) * k
    shares = rng.dirichlet(np.full(k, evenness))
    return np.maximum(FEWEST, np.round(shares * n)).astype(np.int64)


def covariance_root(rng: Generator, d: int, condition: float) -> Array:
    """Return A such that A A' has random axes and eigenvalues between 1 / condition and 1, log-uniform."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(axes * np.exp(-0.5 * rng.uniform(0, np.log(condition), d)))


def centers(rng: Generator, k: int, d: int, apart: float) -> Array:
    """Return k centers whose nearest two are `apart` from each other."""
    points = rng.standard_normal((k, d))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.asarray(points * apart / distances[np.triu_indices(k, 1)].min())


def mixture(
    rng: Generator, *, evenness: float = 5.0, condition: float = 1.0, tail: float = np.inf, far: float = 0.0
) -> tuple[Array, Array]:
    """Return a mixture of elliptic classes, with Student's t of `tail` degrees of freedom.

    `far` is added to the distance between the centers, which grows with the square root of the columns: in
    many columns the rows of a class are far from its center.
    """
    k, d = int(rng.integers(2, 11)), int(rng.integers(2, 31))
    counts = sizes(rng, k, evenness)
    middle = centers(rng, k, d, rng.uniform(2.5, 4.5) + far)
    rows = []
    for center, n in zip(middle, counts, strict=True):
        z = rng.standard_normal((n, d)) @ covariance_root(rng, d, condition).T
        if np.isfinite(tail):
            z *= np.sqrt(tail / rng.chisquare(tail, n))[:, None]
        rows.append(center + z)
    return np.concatenate(rows), np.repeat(np.arange(k), counts)


def with_noise(rng: Generator) -> tuple[Array, Array]:
    """Return a mixture beside up to three times as many columns of noise."""
    X, y = mixture(rng, condition=4.0)
    width = int(rng.integers(1, 4)) * X.shape[1]
    return np.column_stack([X, rng.standard_normal((len(X), width)) * X.std()]), y


def with_units(rng: Generator) -> tuple[Array, Array]:
    """Return a mixture with columns of very different units and a skewed distribution of some."""
    X, y = mixture(rng, condition=4.0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    skewed = rng.random(X.shape[1]) < 0.5
    Z[:, skewed] = np.exp(Z[:, skewed])
    return Z * 10.0 ** rng.uniform(-3, 3, X.shape[1]), y


def with_background(rng: Generator) -> tuple[Array, Array]:
    """Return a mixture in which 5 percent of the rows of each class are spread over the whole range."""
    X, y = mixture(rng)
    lost = rng.random(len(X)) < 0.05
    X[lost] = rng.uniform(X.min(axis=0), X.max(axis=0), (int(lost.sum()), X.shape[1]))
    return X, y


def groups_of_groups(rng: Generator) -> tuple[Array, Array]:
    """Return classes in groups: the centers of the groups are four times as far apart as those inside."""
    n_groups, inside, d = int(rng.integers(2, 4)), int(rng.integers(2, 4)), int(rng.integers(3, 16))
    outer = centers(rng, n_groups, d, 14.0)
    middle = np.concatenate([center + centers(rng, inside, d, 3.5) for center in outer])
    counts = sizes(rng, len(middle), 4.0)
    y = np.repeat(np.arange(len(middle)), counts)
    return middle[y] + rng.standard_normal((len(y), d)), y


def own_columns(rng: Generator) -> tuple[Array, Array]:
    """Return classes that are high in a few columns of their own; all others are noise, and many."""
    k, own = int(rng.integers(3, 9)), int(rng.integers(4, 9))
    counts = sizes(rng, k, 4.0)
    y = np.repeat(np.arange(k), counts)
    d = k * own + int(rng.integers(0, 20))
    X = rng.standard_normal((len(y), d))
    for j in range(k):
        X[np.ix_(y == j, np.arange(j * own, (j + 1) * own))] += rng.uniform(1.5, 2.5)
    return X, y


def answers(rng: Generator) -> tuple[Array, Array]:
    """Return rows of zeros and ones, whose chances depend on the class."""
    k, d = int(rng.integers(2, 7)), int(rng.integers(15, 50))
    y = np.repeat(np.arange(k), sizes(rng, k, 4.0))
    chance = rng.beta(0.7, 0.7, (k, d))
    return (rng.random((len(y), d)) < chance[y]).astype(np.float64), y


def embedded(rng: Generator, flat: Array, noise: float) -> Array:
    """Return points of a plane rotated into more columns, with noise in all of them."""
    d = int(rng.integers(2, 9))
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0][:2]
    return np.asarray(flat @ axes + noise * rng.standard_normal((len(flat), d)))


def moons(rng: Generator) -> tuple[Array, Array]:
    """Return two half circles of unequal sizes that reach into each other."""
    from sklearn.datasets import make_moons

    counts = rng.integers(150, 600, 2)
    flat, y = make_moons((int(counts[0]), int(counts[1])), random_state=int(rng.integers(2**31)))
    return embedded(rng, flat, rng.uniform(0.05, 0.12)), y


def rings(rng: Generator) -> tuple[Array, Array]:
    """Return two or three circles around the same point."""
    k = int(rng.integers(2, 4))
    y = np.repeat(np.arange(k), rng.integers(200, 500, k))
    angle = rng.uniform(0, 2 * np.pi, len(y))
    flat = (1.0 + y)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return embedded(rng, flat, rng.uniform(0.06, 0.14)), y


def spirals(n: int, noise: float, seed: int) -> tuple[Array, Array]:
    """Return two interlocked arms of n / 2 rows each, with few rows near the middle."""
    rng = np.random.default_rng(seed)
    angle = np.pi * (0.5 + 2.5 * np.sqrt(rng.random(n // 2)))
    arm = angle[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.concatenate([arm, -arm]) + noise * rng.standard_normal((n, 2)), np.repeat([0, 1], n // 2)


def arcs(rng: Generator) -> tuple[Array, Array]:
    """Return several arcs, each of its own center, radius and direction."""
    k = int(rng.integers(3, 7))
    y = np.repeat(np.arange(k), sizes(rng, k, 4.0))
    middle, radius, start = centers(rng, k, 2, 3.0), rng.uniform(0.7, 1.5, k), rng.uniform(0, 2 * np.pi, k)
    angle = start[y] + rng.uniform(0, np.pi, len(y))
    flat = middle[y] + radius[y][:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return embedded(rng, flat, 0.1), y


def sheets(rng: Generator) -> tuple[Array, Array]:
    """Return classes on one curved sheet of two dimensions, in many columns."""
    k, d = int(rng.integers(3, 9)), int(rng.integers(8, 60))
    y = np.repeat(np.arange(k), sizes(rng, k, 4.0))
    flat = centers(rng, k, 2, rng.uniform(3.0, 4.5))[y] + rng.standard_normal((len(y), 2)) * 0.8
    waves = flat @ rng.standard_normal((2, d)) * 0.5 + rng.uniform(0, 2 * np.pi, d)
    return np.sin(waves) + 0.1 * rng.standard_normal((len(y), d)), y


def customers(rng: Generator, *, plan_is_segment: bool = False) -> tuple[Array, Array]:
    """Return 4000 customers of four segments, as a table that was encoded for clustering.

    Age, visits, spend (skewed) and a score from 1 to 5 depend on the segment. A boolean, the one-hot columns
    of a plan and those of a country do not, unless the plan is the segment.
    """
    n, k = 4000, 4
    y = rng.choice(k, n, p=[0.4, 0.3, 0.2, 0.1])
    age = np.array([24.0, 42.0, 60.0, 44.0])[y] + 4.0 * rng.standard_normal(n)
    visits = rng.poisson(np.array([30.0, 8.0, 28.0, 60.0])[y]).astype(np.float64)
    spend = np.exp(np.array([3.0, 5.0, 4.0, 6.5])[y] + 0.4 * rng.standard_normal(n))
    score = np.clip(np.round(np.array([3.0, 4.0, 2.5, 4.5])[y] + rng.standard_normal(n)), 1, 5)
    newsletter = (rng.random(n) < 0.4).astype(np.float64)
    plan = np.eye(k)[y if plan_is_segment else rng.choice(k, n, p=[0.5, 0.25, 0.15, 0.1])]
    country = np.eye(5)[rng.choice(5, n, p=[0.4, 0.25, 0.15, 0.12, 0.08])]
    return np.column_stack([age, visits, spend, score, newsletter, plan, country]), y


KINDS: dict[str, Callable[[Generator], tuple[Array, Array]]] = {
    "round": mixture,
    "unequal": lambda rng: mixture(rng, evenness=0.8),
    "elliptic": lambda rng: mixture(rng, condition=50.0),
    "heavy": lambda rng: mixture(rng, tail=3.0, far=1.5),
    "unequal elliptic heavy": lambda rng: mixture(rng, evenness=1.0, condition=10.0, tail=4.0, far=1.0),
    "noise columns": with_noise,
    "units": with_units,
    "background": with_background,
    "groups": groups_of_groups,
    "own columns": own_columns,
    "answers": answers,
    "moons": moons,
    "rings": rings,
    "arcs": arcs,
    "sheets": sheets,
}


def generated(seed: int) -> Iterator[tuple[str, Array, Array]]:
    """Yield (name, X, y) of one dense set per kind, with rows in random order."""
    for kind, make in KINDS.items():
        rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
        X, y = make(rng)
        order = rng.permutation(len(y))
        yield f"{kind} {seed}", X[order], y[order]


def topics(seed: int) -> Iterator[tuple[str, Any, Array]]:
    """Yield (name, X, y) of sparse sets like text: tf-idf of unit length, and counts, of the same rows.

    A document has a random length; its words are of its class's topic or of the language, which all share.
    Word frequencies fall like those of a language (Zipf).
    """
    rng = np.random.default_rng([zlib.crc32(b"topics"), seed])
    k, n_words = int(rng.integers(3, 11)), int(rng.integers(1000, 4001))
    y = rng.permutation(np.repeat(np.arange(k), sizes(rng, k, 2.0)))
    language = 1.0 / np.arange(1, n_words + 1)
    language /= language.sum()
    own = rng.dirichlet(np.full(n_words, 0.02), k)
    share = rng.uniform(0.15, 0.5)
    length = np.maximum(15, rng.lognormal(4.0, 0.6, len(y))).astype(np.int64)
    rows = [
        rng.multinomial(n, share * own[j] + (1 - share) * language) for n, j in zip(length, y, strict=True)
    ]
    counts = sparse.csr_matrix(np.array(rows, dtype=np.float64))
    yield f"counts {seed}", counts, y
    yield f"tf-idf {seed}", tf_idf(counts), y


def tf_idf(counts: Any) -> Any:
    """Return counts times ln(rows / rows with the word), each row of unit length."""
    seen = np.maximum(1, np.bincount(counts.indices, minlength=counts.shape[1]))
    weighted = sparse.csr_matrix(counts @ sparse.diags_array(np.log(counts.shape[0] / seen)))
    length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags_array(1.0 / np.maximum(length, 1e-12)) @ weighted)
