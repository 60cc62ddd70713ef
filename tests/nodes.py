"""Nodes for tests: rows as a search sees them."""

from dataclasses import replace

from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.principal import principal
from ravine.data.query import run


def node_of(
    X, weights=None, *, seed=0, min_weight=1.0, standardize=True, root_standardization=None, labels=None
):
    """Return the node of some rows, not yet measured."""
    return Node(MemoryRows(X, weights), (seed,), min_weight, standardize, root_standardization, labels=labels)


def measured(X, weights=None, **options):
    """Return the node of some rows with its standardization and its first principal deviation."""
    node = run(measure(node_of(X, weights, **options)))
    if not node.standardization.varies.any():
        return node
    return replace(node, deviation=float(run(principal(node, 1)).deviations[0]))
