"""The leaves that rows in blocks were divided into, and how many rows of each leaf every block has."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from ravine.data.block_pass import Count, Fold, Part
from ravine.data.query import Divider


class Leaves:
    """Leaf ids: 0 is all rows, and a leaf that was divided stands for the leaves below it.

    `counts` has the rows of every leaf, block by block; it is all that the owner of the blocks has to know of
    them to skip blocks and to say how large a set of rows is. `places` are those of the blocks with rows in
    the tree of `fold`, in which sums over blocks are merged.
    """

    def __init__(self, root: dict[int, Count]) -> None:
        self.counts: dict[int, dict[int, Count]] = {0: root}
        self.places = {block: place for place, block in enumerate(sorted(root))}
        self.children: dict[int, tuple[int, int]] = {}

    def below(self, leaves: Iterable[int]) -> tuple[int, ...]:
        """Return the undivided leaves that some leaves are made of."""
        found, stack = [], list(leaves)
        while stack:
            leaf = stack.pop()
            if leaf in self.children:
                stack += self.children[leaf]
            else:
                found.append(leaf)
        return tuple(sorted(found))

    def blocks(self, leaves: Iterable[int]) -> set[int]:
        """Return the blocks that have rows of some leaves."""
        return {block for leaf in leaves for block in self.counts[leaf]}

    def parts(self, pairs: Sequence[tuple[int, Divider]]) -> list[Part]:
        """Return how leaves are to be divided, with new ids for both sides."""
        first = len(self.counts)
        return [
            Part(self.below([leaf]), boundary, first + 2 * k, first + 2 * k + 1)
            for k, (leaf, boundary) in enumerate(pairs)
        ]

    def divide(self, leaf: int, part: Part, found: dict[int, dict[int, Count]]) -> None:
        """Note that a leaf was divided; `found` has the counts of every block."""
        for side in (part.left, part.right):
            self.counts[side] = {block: counts[side] for block, counts in found.items() if side in counts}
        self.children[leaf] = (part.left, part.right)

    def total(self, counts: dict[int, Count]) -> Count:
        """Return the count of all blocks; weights are added in the tree of `fold`."""
        ordered = [counts[block] for block in sorted(counts)]
        weight = Fold(operator.add)
        for block in self.places:
            weight.add(counts[block].total if block in counts else None)
        firsts = [one.first for one in ordered if one.n_counted]
        return Count(
            sum(one.n_rows for one in ordered),
            weight.result() or 0.0,
            sum(one.n_counted for one in ordered),
            firsts[0] if firsts else -1,
        )
