"""The tree of a fitted clusterer: nodes in arrays, with edits and exports as methods."""

from __future__ import annotations

from dataclasses import dataclass

from ravine.store import parts
from ravine.tree import edit, export, simplify, summary
from ravine.tree.arrays import TreeArrays


@dataclass(frozen=True, eq=False, repr=False)
class ClusterTree(TreeArrays):
    """Nodes with their children, their weight, and the split of each inner node.

    A tree is never changed: `cut`, `prune`, `merge`, `resplit`, `move` and `simplify` return another
    one. `print(tree)` shows it as text.

    Attributes
    ----------
    parent, left, right : int arrays
        The node's parent and children; -1 for none. Node 0 is the root.
    weight : float array
        The total weight of the training rows in each node (their number, without sample weights).
    splits : tuple of Split or None
        The split of each node; None for a leaf.
    order : int array
        The number of each split in the order of growth, from 0; -1 for a leaf.
    refused : tuple of Split or None
        The best split of a leaf that was found but not made, with its evidence; None where there is none.
    label : int array
        The cluster of each leaf; -1 for inner nodes. From left to right, unless leaves were merged.
    feature_names : tuple of str, optional
        The names of the columns, if they had some.
    spread : float
        The root mean square of the standard deviations of the columns: 1 where
        columns are standardized.
    mapped : bool
        Whether the tree splits the feature space of a kernel; its columns are then components of the map.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from sklearn.datasets import load_wine
    >>> tree = MinimumDensity(3).fit(load_wine(as_frame=True).data).tree_
    >>> print(tree.cut(2))
    178 rows (100%), split with quality 0.30 by +proline, +flavanoids, +proanthocyanins
    ├─ cluster 0: 101 rows (57%)
    └─ cluster 1: 77 rows (43%)
    >>> tree
    <ClusterTree: 3 clusters of 178 rows>
    """

    cut = edit.cut
    prune = edit.prune
    merge = edit.merge
    resplit = edit.resplit
    move = edit.move
    simplify = simplify.simplify

    exemplars = summary.exemplars

    export_text = export.text
    export_sql = export.sql
    to_frame = export.frame
    to_linkage = export.linkage
    to_json = parts.to_json

    @classmethod
    def from_json(cls, text: str) -> ClusterTree:
        """Read a tree from JSON; any other text raises an `InvalidModelError`.

        Parameters
        ----------
        text : str
            What `to_json` returned.
        """
        return parts.from_json(cls, text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterTree) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        clusters = f"{self.n_clusters} cluster{'' if self.n_clusters == 1 else 's'}"
        return f"<ClusterTree: {clusters} of {self.weight[0]:g} rows>"

    __str__ = export.text
    _repr_html_ = export.html
