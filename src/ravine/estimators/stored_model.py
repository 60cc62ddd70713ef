"""Model files without their estimators: enough to show a model and to route rows through its tree.

Needs no scikit-learn, whose import takes longer than most predictions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.exceptions import InvalidModelError
from ravine.io.archive import Stored, read_archive, read_if_archive
from ravine.tree.json_text import check_version, refusing, version_of
from ravine.tree.parts import tree_from
from ravine.tree.tree import ClusterTree

if TYPE_CHECKING:
    from ravine.data.far import FarRows

NOT_A_MODEL = "is not a valid ravine model"


@contextmanager
def open_model(path: str | os.PathLike[str]) -> Iterator[Stored]:
    """Yield what a model file stores; every error in it becomes an `InvalidModelError` of one sentence."""
    name = os.fspath(path)
    content = read_if_archive(name)
    if content is None:
        raise InvalidModelError(f"{name} {NOT_A_MODEL}: give a file that ravine.save wrote")
    with refusing(f"{name} {NOT_A_MODEL}"):
        stored = read_archive(content)
        version = version_of(stored)
    check_version(name, version)
    with refusing(f"{name} {NOT_A_MODEL}"):
        yield stored


@dataclass(frozen=True)
class StoredColumns:
    """What a model file says about the fit besides the method: columns, their fill values, its cost."""

    n_features: int
    n_iter: int
    n_passes: float
    columns: tuple[str, ...] | None
    fill: FloatArray | None


def take_columns(stored: Stored) -> StoredColumns:
    """Take what all models store."""
    n_features = stored.integer("n_features", low=1)
    n_iter, n_passes = stored.integer("n_iter", low=0), stored.number("n_passes", low=0)
    columns = stored.texts_or_none("columns", n_features)
    fill = stored.floats("fill", n_features) if "fill" in stored.arrays else None
    return StoredColumns(n_features, n_iter, n_passes, None if columns is None else tuple(columns), fill)


def take_parameters(stored: Stored) -> dict[str, Any]:
    """Take the parameters, except a checkpoint: the next `fit` would write to a path that the file names."""
    return {name: value for name, value in stored.inner("parameters").facts.items() if name != "checkpoint"}


def rule_from(stored: Stored, n_features: int) -> FarRows | None:
    """Return the rule for rows far from all others, or None."""
    if "outlier_center" not in stored.arrays:
        return None
    from ravine.data.far import FarRows

    return FarRows(
        stored.floats("outlier_center", n_features),
        stored.floats("outlier_inverse_scale", n_features, low=0),
        float(stored.floats("outlier_limit", 1, low=0)[0]),
        stored.floats("outlier_groups", None, n_features),
    )


@dataclass(frozen=True)
class StoredModel:
    """A model as its file describes it. `tree` is None for a classifier, which has none.

    `rule` tells which rows get the label -1; None unless the model labels outliers.
    """

    kind: str
    parameters: dict[str, Any]
    fitted: StoredColumns
    tree: ClusterTree | None
    rule: FarRows | None

    @property
    def has_kernel(self) -> bool:
        """Whether rows are mapped before they are routed, which needs `ravine.load`."""
        return self.parameters.get("kernel") is not None

    def predict(self, X: Any) -> IntArray:
        """Return the cluster of every row, with the bits of the estimator's `predict`."""
        assert self.tree is not None
        rows, rule = MemoryRows(X), self.rule
        labels = self.tree.route(rows)
        if rule is not None:
            labels[rows.map(lambda block: rule.distances(block) > 0)] = -1
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the memberships of every row, with the bits of the estimator's `predict_proba`."""
        assert self.tree is not None
        return self.tree.memberships(MemoryRows(X))


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file; the parameters and a kernel's map are checked by `ravine.load` only."""
    with open_model(path) as stored:
        kind, parameters = str(stored.fact("class")), take_parameters(stored)
        fitted = take_columns(stored)
        is_tree = "parent" in stored.arrays
        mapped = parameters.get("kernel") is not None
        tree = tree_from(ClusterTree, stored, None if mapped else fitted.n_features) if is_tree else None
        rule = rule_from(stored, fitted.n_features) if parameters.get("outliers") == "label" else None
    return StoredModel(kind, parameters, fitted, tree, rule)
