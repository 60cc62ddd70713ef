"""A node: what a search may know about its rows, and the samples that it can ask for."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.query import Answer, Asked, Query, Request, RowSet, gather, run
from ravine.data.sample import Sample, part_of, read_sample
from ravine.data.standardization import Moments, Standardization, first_guess, of_moments, power_of_two

# Rows for a first guess of the middle and the width of every column, and for the scales by which rows far
# from everything are found: enough for quantiles that few rows do not move, and read in a moment.
FEW_ROWS = 512
LOCAL_CELLS = 1 << 22  # most values of a node that is copied and searched in memory
LARGE_SAMPLE = 16384  # least rows of the first sample, which is searched from all starts
SAMPLE_CELLS = 1 << 24  # most values (rows x columns) of a sample, or of those of all leaves: 128 MiB


@dataclass(frozen=True)
class Labels:
    """The rows whose class is given: their raw values, the number of their class, and their weights."""

    rows: FloatArray
    classes: IntArray
    weights: FloatArray

    @property
    def n_classes(self) -> int:
        """The number of different classes."""
        return len(np.unique(self.classes))

    def pick(self, which: npt.NDArray[np.bool_]) -> Labels:
        """Return a subset."""
        return Labels(self.rows[which], self.classes[which], self.weights[which])

    def pairs_together(self, right: npt.NDArray[np.bool_]) -> float:
        """Return the weight of the pairs of different classes that lie on the same side of a boundary.

        >>> labels = Labels(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]), np.ones(3))
        >>> [labels.pairs_together(labels.rows[:, 0] > threshold) for threshold in (0.5, 1.5)]
        [1.0, 0.0]
        """
        pairs = 0.0
        for side in (right, ~right):
            mass = np.bincount(self.classes[side], self.weights[side])
            pairs += (float(mass.sum()) ** 2 - float(mass @ mass)) / 2.0
        return pairs


def labels_of(rows: RowSet, numbers: IntArray, classes: IntArray) -> Labels:
    """Read the rows of these numbers (in increasing order), and return them with their classes."""
    few = rows.select(numbers)
    values, weights = few.map(lambda block: block.dense()), few.map(lambda block: block.weights)
    return Labels(values, classes, weights)


@dataclass(frozen=True)
class Node:
    """What a search knows about some rows: their number, weight, standardization, labels and random numbers.

    Queries ask about the rows with `ask`, and never hold them. `root_standardization` is that of all rows,
    whose scales every node uses; None where it is not known yet. `is_root` is whether these are all rows of
    the tree, and not a part or a sample of them; `is_sample` whether they are a sample of a node, in memory.
    `measured` is the standardization of these rows, once known, and `deviation` the standard deviation along
    their first principal direction. Random numbers depend on `stream` (the seed of the fit and the path of
    the node) and on their purpose. `drawn` are samples of these rows that were drawn when the node was
    opened, because later each would cost a pass; `standardized` are the rows of a small node in memory as
    compiled loops read them, while a pursuit lasts.
    """

    rows: RowSet
    stream: tuple[int, ...] = (0,)
    min_weight: float = 1.0
    standardize: bool = True
    root_standardization: Standardization | None = None
    is_root: bool = True
    measured: Standardization | None = None
    deviation: float = np.nan
    labels: Labels | None = None
    is_sample: bool = False
    drawn: Mapping[Sample, Answer] = field(default_factory=dict, compare=False, repr=False)
    standardized: Any = field(default=None, compare=False, repr=False)  # see `hold` in optimize/pursuit.py

    def ask(self, *requests: Request) -> list[Asked]:
        """Return requests about the rows of this node, for a query to yield."""
        return [Asked(self.rows, request) for request in requests]

    @property
    def standardization(self) -> Standardization:
        """Means and scales of the columns of a measured node."""
        assert self.measured is not None
        return self.measured

    @property
    def total(self) -> float:
        """The weight of the rows."""
        return self.rows.total

    @property
    def n_rows(self) -> int:
        """The number of rows of positive weight."""
        return self.rows.n_counted

    @property
    def is_local(self) -> bool:
        """Whether the rows are in memory with every engine: those of a sample, or of a small node.

        Nodes without samples are, because all steps of their search would be passes.
        """
        most = LOCAL_CELLS if self.sample_sizes else 2 * LOCAL_CELLS
        return self.is_sample or self.n_rows * self.rows.values_per_row <= most

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return self.rows.shape[1]

    @property
    def sample_sizes(self) -> list[int]:
        """The sizes of the samples that are searched before all rows."""
        share = 1.0
        if self.root_standardization is not None and not self.is_sample:
            share = min(1.0, self.total / self.root_standardization.total)
        return sample_sizes(self.n_rows, self.n_features, share)

    @property
    def pivot(self) -> FloatArray:
        """The mean of all rows, to which thresholds are relative."""
        return (self.root_standardization or self.standardization).mean

    @cached_property
    def standardized_labels(self) -> FloatArray:
        """The labeled rows, standardized."""
        assert self.labels is not None
        return self.standardization.apply(self.labels.rows)

    def seed(self, purpose: str) -> list[int]:
        """Return the seed of the random numbers for a purpose."""
        return [*self.stream, zlib.crc32(purpose.encode())]

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random number generator for a purpose."""
        return np.random.default_rng(self.seed(purpose))

    def sample_request(self, n: int, purpose: str) -> Sample:
        """Return the request for a sample of n rows of this node."""
        return Sample(n, int(np.random.SeedSequence(self.seed(purpose)).generate_state(1, np.uint64)[0]))

    def copy_rows(self, answer: Answer) -> MemoryRows:
        """Return sampled rows in memory, with the threads of this node."""
        values, weights, numbers = read_sample(answer)
        rows = MemoryRows(values, None if (weights == 1.0).all() else weights, self.rows.threads)
        return replace(rows, numbers_in_data=numbers)

    def of_sample(self, answer: Answer, purpose: str) -> Node:
        """Return the node of a sample: in memory, with the same scales, and `min_weight` in proportion."""
        rows = self.copy_rows(answer)
        return replace(
            self,
            rows=rows,
            stream=tuple(self.seed(purpose)),
            min_weight=self.min_weight * rows.total / self.total,
            root_standardization=self.root_standardization or self.measured,
            is_root=False,
            measured=None,
            deviation=np.nan,
            is_sample=True,
            drawn={},
            standardized=None,
        )


@dataclass(frozen=True)
class Opened:
    """A measured node, and what was seen of its rows in the same pass.

    `samples` are searched before all rows, the smallest first. `few` are some rows, dense or CSR, and their
    weights; `low` and `high` are the least and the largest value of every column.
    """

    node: Node
    samples: tuple[Node, ...]
    few: tuple[Any, FloatArray]
    low: FloatArray
    high: FloatArray

    def given(self, stream: tuple[int, ...], labels: Labels | None) -> Opened:
        """Return the same rows with other labels and random numbers, also for the samples."""
        samples = tuple(replace(few, labels=labels) for few in self.samples)
        return replace(self, node=replace(self.node, stream=stream, labels=labels), samples=samples)

    @property
    def finest_sample(self) -> Node:
        """The largest sample, in memory; the node itself if it is small, or has none."""
        return self.node if self.node.is_local or not self.samples else self.samples[-1]


def draw_sample(node: Node, request: Sample) -> Query[Any]:
    """Return the answer to a sample request; one pass, or none if it was drawn when the node was opened."""
    if request in node.drawn:
        return node.drawn[request]
    (answer,) = yield node.ask(request)
    return answer


def sample(node: Node, n: int, purpose: str) -> Query[Node]:
    """Draw n rows of a node, or all if there are fewer; return them as a measured node in memory."""
    answer = yield from draw_sample(node, node.sample_request(n, purpose))
    return (yield from measure(node.of_sample(answer, purpose)))


def sample_rows(node: Node, n: int, purpose: str) -> Query[tuple[FloatArray, FloatArray]]:
    """Draw n rows of a node; return their raw values (dense) and their weights."""
    answer = yield from draw_sample(node, node.sample_request(n, purpose))
    values, weights, _ = read_sample(answer)
    return (values.toarray() if sparse.issparse(values) else values), weights


def measure(node: Node) -> Query[Node]:
    """Return a node with its standardization: its own means, the scales of the root; one pass."""
    measured, _, _ = yield from _measure(node, [])
    return measured


def open_node(node: Node, sizes: Sequence[int], ahead: Sequence[Sample] = ()) -> Query[Opened]:
    """Measure a node and draw samples of these sizes from it, in one pass.

    Each sample is part of the larger ones, so that one request draws them all. Where passes are expensive,
    samples that are asked for later are drawn `ahead` in the same pass, see `draw_sample`.
    """
    n_few = min(FEW_ROWS, 1 + SAMPLE_CELLS // node.n_features)
    largest = node.sample_request(max([*sizes, n_few]), "sample 0")
    ahead = [] if node.rows.engine.local else [one for one in dict.fromkeys(ahead) if one not in node.drawn]
    measured, (low, high), (drawn, *others) = yield from _measure(node, [largest, *ahead])
    measured = replace(measured, drawn={**node.drawn, **dict(zip(ahead, others, strict=True))})
    samples = yield from sample_nodes(measured, drawn, sizes)
    values, weights, _ = read_sample(part_of(drawn, n_few))
    return Opened(measured, tuple(samples), (values, weights), low, high)


def sample_nodes(node: Node, drawn: Answer, sizes: Sequence[int]) -> Query[list[Node]]:
    """Return samples of these sizes, all part of a drawn one, as measured nodes in memory."""
    found = []
    for k, n in enumerate(sizes):
        found.append((yield from measure(node.of_sample(part_of(drawn, n), f"sample {k}"))))
    return found


def side_by_side(node: Node, queries: Sequence[Query[Any]]) -> Query[list[Any]]:
    """Run queries about a node: by threads if its rows are in memory, else in the same passes."""
    threads = node.rows.threads
    if threads.n == 1 or len(queries) == 1 or not node.is_local or not node.rows.engine.local:
        return (yield from gather(queries))
    return threads.map(run, queries)


def _measure(
    node: Node, draws: Sequence[Sample]
) -> Query[tuple[Node, tuple[FloatArray, FloatArray], Sequence[Answer]]]:
    """Return the measured node, the range of every column, and the samples drawn in the same pass.

    At the root, where nothing is known about the columns, a few rows are looked at before.
    """
    if node.root_standardization is None:
        (few,) = yield node.ask(Sample(FEW_ROWS))
        pivot, scale = first_guess(read_sample(few)[0])
    else:
        pivot, scale = node.root_standardization.mean, power_of_two(node.root_standardization.deviation)
    answer, *drawn = yield node.ask(Moments(pivot, scale), *draws)
    # A guess far from the mean costs digits: then the moments are computed again about the mean found.
    found, again = of_moments(answer, pivot, scale, node.total)
    if again is not None:
        (answer,) = yield node.ask(Moments(*again))
        found, _ = of_moments(answer, *again, node.total, last=True)
    _, low, high = answer
    return (
        replace(node, measured=found.scaled(node.root_standardization, node.standardize)),
        (low, high),
        drawn,
    )


def collect(node: Node) -> Query[Node]:
    """Copy the rows of a small node, so that it is searched in memory, whatever the engine."""
    if not node.is_local or node.rows.is_whole:
        return node
    if node.is_root and node.rows.n_counted < node.rows.shape[0]:
        # the copy lacks rows of weight 0, which are labeled: NaN in them is refused here, as in `predict`
        yield from measure(node)
    (answer,) = yield node.ask(Sample(node.n_rows))  # a sample of as many rows as there are is a copy
    return replace(node, rows=node.copy_rows(answer))


def sample_sizes(n: int, n_features: int, share: float = 1.0) -> list[int]:
    """Return the sizes of the samples that are searched before all n rows: about n/64, then n/16.

    The first has at least 16384 rows, but at most half of all. Fewer rows are searched as they are, so that
    the choice among local optima of almost the same value does not depend on the seed; above 8192 rows only
    up to 2^23 values. The rows are a share of all rows, and their samples have at most that share of
    SAMPLE_CELLS, so that those of all leaves fit into memory. (A stage of n/4 rows was tried: the optimum
    moves with the bandwidth, so that its passes are better spent on all rows.)

    >>> [sample_sizes(n, 20) for n in (16_000, 20_000, 100_000, 1_000_000)]
    [[], [10000], [16384], [16384, 62500]]
    >>> [sample_sizes(n, 2000) for n in (8000, 10_000, 100_000)]
    [[], [5000], [8388]]
    """
    if n < LARGE_SAMPLE // 2 or (n < LARGE_SAMPLE and n * n_features <= 2 * LOCAL_CELLS):
        return []
    most = max(int(share * SAMPLE_CELLS) // n_features, LARGE_SAMPLE // 2)
    first = min(max(n // 64, LARGE_SAMPLE), n // 2, most)
    second = min(n // 16, most)
    return [first, second] if second >= 2 * first else [first]
