"""Start the explorer, from Python or from the command line."""

from __future__ import annotations

import os
import secrets
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ravine._rows import check_rows
from ravine._validate import IntArray
from ravine.exceptions import InvalidInputError
from ravine.explorer.session import INDEX, Session
from ravine.explorer.state import Rows
from ravine.tree.tree import ClusterTree
from ravine.view.fitted import changed_parameters

TOKEN_BYTES = 24  # of the secret in the address
MEMORY_CELLS = 1 << 27  # values of a file that is read into memory, at most: 1 GiB


class Explorer:
    """A running explorer: its address, the tree and labels as they are now; `stop()` ends it."""

    def __init__(self, session: Session, server: Any, model: Any) -> None:
        self.session, self._server, self._model = session, server, model
        self.address: str = server.address

    @property
    def tree(self) -> ClusterTree:
        """The tree as it is now."""
        return self.session.state.tree

    @property
    def labels(self) -> IntArray:
        """The cluster of every row as it is now."""
        return self.tree.route(self.session.rows.of(self.session.state.model))

    @property
    def model(self) -> Any:
        """The model with the tree as it is now."""
        return self._model()

    @property
    def script(self) -> str:
        """Python that, run alone, gives the same labels."""
        return self.session.script()

    @property
    def is_running(self) -> bool:
        """Whether the page is answered."""
        running: bool = self._server.is_running
        return running

    def stop(self) -> None:
        """End the server; the work stays saved in `session.folder`."""
        self._server.stop()

    def __repr__(self) -> str:
        return f"<Explorer: {self.address}, saved in {self.session.folder}>"


def explore(
    model: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    row_ids: Sequence[Any] | None = None,
    row_html: Callable[[int], str] | None = None,
    session: str | os.PathLike[str] | None = None,
    code: Sequence[str] | None = None,
    source: str | None = None,
    port: int = 0,
    open_browser: bool = True,
) -> Explorer:
    """Open a page on this machine in which the tree of a fitted clusterer is looked at and edited.

    The server answers on the loopback address only, to requests with the random token of its address; no data
    leave the machine. It runs in a thread, so that Python goes on.

    Parameters
    ----------
    model : fitted clusterer
    X : array, memmap, CSR matrix, data frame or file of `ravine.open`
        The rows that it was fitted on. A file of up to 1 GiB is read into memory; a larger one stays on disk,
        where actions are slower.
    feature_names, row_ids : sequences, optional
        Names of columns and rows; by default those seen in `fit`, and numbers.
    row_html : function from a row number to HTML, optional
        Shows typical rows, for example as pictures, here and in the report that can be saved. What it returns
        is trusted: it is not escaped.
    session : path of a folder, optional
        Where work is saved on every action. A folder with a saved session continues it, and `model` is not
        used. By default a new temporary folder.
    code : sequence of str, optional
        Lines of Python that make `X` and `model`, for the script of the session. By default `X` is expected.
    source : str, optional
        Where the rows come from, for the title.
    port : int, default 0
        The port, or 0 for any that is free.
    open_browser : bool, default True
        Whether to open the page in a browser.

    Examples
    --------
    >>> from ravine import MinimumDensity, explore
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> explorer = explore(MinimumDensity(3).fit(wine), wine, open_browser=False)
    >>> explorer.address.startswith("http://127.0.0.1:"), explorer.tree
    (True, <ClusterTree: 3 clusters of 178 rows>)
    >>> explorer.stop()
    """
    from ravine.explorer.answers import Answers
    from ravine.explorer.exports import Export
    from ravine.explorer.server import Server

    model = getattr(model, "best_estimator_", model)  # the tree of an AutoCluster is that of its winner
    names = feature_names if feature_names is not None else getattr(X, "columns", None)
    values, reading = _in_memory(check_rows(X, min_rows=2))
    rows = Rows(values, n_jobs=os.cpu_count() or 1)
    folder = Path(tempfile.mkdtemp(prefix="ravine-explore-")) if session is None else Path(session)
    listed = None if names is None else [str(name) for name in names]
    if (folder / INDEX).exists():
        found = Session.restored(rows, folder, listed)
    else:
        if not hasattr(model, "tree_"):
            raise InvalidInputError(f"explore needs a fitted clusterer, got {type(model).__name__}")
        made = [*(_code(model) if code is None else code), *reading]
        found = Session(rows, model, folder, code=made, names=listed)
    answers = Answers(found, row_ids, title=source or "", row_html=row_html)
    export = Export(answers, source, table=Path(source).stem if source else "data")
    server = Server(answers, secrets.token_urlsafe(TOKEN_BYTES), port, export)
    server.start()
    if open_browser:
        webbrowser.open(server.address)
    return Explorer(found, server, export.model)


def _in_memory(X: Any) -> tuple[Any, list[str]]:
    """Return a file as an array, unless it is too large, and the Python that does so."""
    if isinstance(X, np.ndarray) or sparse.issparse(X) or X.shape[0] * X.shape[1] > MEMORY_CELLS:
        return X, []
    return X[0 : X.shape[0]], ["X = X[0 : X.shape[0]]  # in memory"]


def _code(model: Any) -> list[str]:
    """Return the Python that fits a model again, where only its parameters are known."""
    changed = [f"{name}={value}" for name, value in changed_parameters(model).items()]
    return [
        "# X: the rows that were given to ravine.explore",
        f"model = {type(model).__name__}({', '.join(changed)}).fit(X)",
    ]
