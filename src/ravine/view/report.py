"""One self-contained page about a fitted tree: map, clusters, splits and what drives them, how to repeat it.

A page needs no network and no library: HTML, inline SVG and a few lines of script, from `report.html.j2`.
Text from the data is escaped, and a content security policy blocks all other scripts.
"""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from typing import Any

from ravine.exceptions import InvalidInputError
from ravine.view import palette, pictures, words
from ravine.view.check import check
from ravine.view.facts import Facts, RowIds, facts_of, ids_of
from ravine.view.fitted import changed_parameters, tree_of
from ravine.view.pages import render

MAX_LEAVES = 1000  # leaves of a tree that has a page: about 20 MB, in seconds

RowHtml = Callable[[int], str]


def report(
    model: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    sample_weight: Any = None,
    row_ids: RowIds | None = None,
    labels: Any = None,
    coordinates: Any = None,
    row_html: RowHtml | None = None,
    names: Mapping[int, str] | None = None,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
) -> str:
    """Return a page about a fitted clusterer (or a tree) and the rows of X, as HTML.

    It takes six passes, and one more to check the data. A tree of more than 1000 leaves is refused.

    Parameters
    ----------
    model : fitted clusterer or ClusterTree
        With a kernel, the clusterer and not its tree alone; this costs two more passes.
    X : array, memmap, CSR matrix, data frame, file of `ravine.open` or dask collection
        The rows that densities, profiles and exemplars are taken from: the training rows, or others.
    feature_names : sequence of str, optional
        The names of the columns; by default those seen in `fit`.
    sample_weight : array of shape (n_rows,), optional
    row_ids : sequence, or function from row numbers to a mapping of their ids, optional
        The names of typical rows; by default their numbers, from 0.
    labels : array of shape (n_rows,), optional
        True classes, to compare the clusters with.
    coordinates : array of shape (n_rows, 2), optional
        Places of the rows on the map, such as those of t-SNE or UMAP; by default principal components, in
        which the lines of splits can be drawn.
    row_html : function from a row number to HTML, optional
        Shows typical rows, for example as pictures. What it returns is trusted: it is not escaped.
    names : mapping from the label of a cluster to its name, optional
    title, source, command : str, optional
        The heading, where the rows come from, and the command that made the model.

    Examples
    --------
    >>> from ravine import MinimumDensity, report
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> page = report(MinimumDensity(3).fit(wine), wine, source="wine.csv")
    >>> "proline" in page, "<script src" in page
    (True, False)
    """
    if (n := tree_of(model).n_leaves) > MAX_LEAVES:
        raise InvalidInputError(
            f"a report shows at most {MAX_LEAVES} leaves, got {n}; cut the tree (tree.cut, or 'ravine cut')"
        )
    facts = facts_of(model, X, feature_names, sample_weight, row_ids, labels, coordinates, names)
    clusters = words.many(facts.tree.n_clusters, "cluster")
    style, script = (
        resources.files("ravine.view").joinpath(f"report.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    return render(
        "report.html.j2",
        style=style,
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        colors=palette.CLUSTERS,
        clusters=clusters,
        heading=title or f"{clusters} in {words.many(facts.n_rows, 'row')}",
        source=source,
        command=command,
        facts=facts,
        row_html=row_html,
        aside=ids_of(row_ids, facts.aside.tolist()[:20]),
        findings=_findings(facts, X),
        versions=[f"{name} {version(name)}" for name in ("ravine", "numpy", "scikit-learn")],
        python=platform.python_version(),
        changed={} if facts.model is None else changed_parameters(facts.model),
        **_pictures(facts),
    )


def _pictures(facts: Facts) -> dict[str, Any]:
    """Return the numbers of all pictures by the names that the template has for them."""
    labels = list(dict.fromkeys(facts.tree.label[facts.tree.leaves].tolist()))
    return {
        "map": pictures.place_map(facts.row_map),
        "boxes": pictures.place_nodes(facts.tree, facts.means.weight),
        "outlines": {node: pictures.outline(curve) for node, curve in facts.densities.items()},
        "heat": pictures.heat_of(facts.profile[labels], facts.names, labels),
    }


def _findings(facts: Facts, X: Any) -> list[str]:
    """Return what `ravine.check` finds in the rows."""
    if facts.tree.mapped and not facts.curved:  # a precomputed kernel, or a function: no columns
        return []
    return [one.sentence for one in check(X, facts.names)]
