"""The budget of passes: how many a solver makes at most over all rows of a node.

Solvers converge on samples, which are in memory. On all rows of a node that is too large for that they only
take the last steps, and say so in their status. The rule does not ask which engine holds the rows, so that
the answer is the same for all engines.
"""

from __future__ import annotations

from ravine.data.node import Node
from ravine.optimize.descent import ITERATION_LIMIT

FULL_STEPS = 3  # most steps over all rows after the samples; more change the value by 1 %, no label
PASS_LIMIT = "pass limit"


def steps_on(node: Node, max_iter: int, most: int = FULL_STEPS) -> int:
    """Return how many steps a solver may take on the rows of a node."""
    return max_iter if node.is_local else min(max_iter, most)


def status_on(node: Node, status: str) -> str:
    """Return the status of a solver, which is "pass limit" if the budget of passes ended it."""
    return PASS_LIMIT if status == ITERATION_LIMIT and not node.is_local else status
