"""Start the explorer, from Python or from the command line."""

from __future__ import annotations

import os
import secrets
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import IntArray, check_rows
from ravine.exceptions import InvalidInputError
from ravine.explorer.session import INDEX, Session, hold
from ravine.explorer.state import Rows
from ravine.tree.tree import ClusterTree
from ravine.view.fitted import changed_parameters


class Explorer:
    """A running explorer: its address, the tree and labels as they are now; `stop()` ends it."""

    def __init__(self, session: Session, server: Any, answers: Any) -> None:
        self.session, self._server, self._answers = session, server, answers
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
        from ravine.explorer.exports import model_of

        return model_of(self._answers)

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
        (self.session.folder / "open.html").unlink(missing_ok=True)
        if self.session.held is not None:
            self.session.held.close()

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
        The rows that it was fitted on. A file is read into memory.
    feature_names, row_ids : sequences, optional
        Names of columns and rows; by default those seen in `fit`, and numbers.
    row_html : function from a row number to HTML, optional
        Shows typical rows, for example as pictures, here and in the report that can be saved. What it returns
        is trusted: it is not escaped.
    session : path of a folder, optional
        Where work is saved on every action. A folder with a saved session continues it, and `model` is not
        used. By default a new temporary folder. One explorer at a time can have a folder.
    code : sequence of str, optional
        Lines of Python that make `X` and `model`, for the script of the session. By default `X` is expected.
        If a session is continued and no line makes `model`, the script loads it from the folder.
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
    from ravine.explorer.server import Server

    model = getattr(model, "best_estimator_", model)  # the tree of an AutoCluster is that of its winner
    names = feature_names if feature_names is not None else getattr(X, "columns", None)
    values, reading = check_rows(X, min_rows=2), []
    if not isinstance(values, np.ndarray) and not sparse.issparse(values):
        values, reading = values[0 : values.shape[0]], ["X = X[0 : X.shape[0]]  # in memory"]
    rows = Rows(values, n_jobs=os.cpu_count() or 1)
    listed = None if names is None else [str(name) for name in names]
    continues = session is not None and (Path(session) / INDEX).exists()
    if not continues and not hasattr(model, "tree_"):
        raise InvalidInputError(f"explore needs a fitted clusterer, got {type(model).__name__}")
    folder = Path(tempfile.mkdtemp(prefix="ravine-explore-")) if session is None else Path(session)
    made = [*(_code(None if continues else model) if code is None else code), *reading]
    with ExitStack() as on_error:
        held = on_error.enter_context(hold(folder))
        found = Session(rows, None if continues else model, folder, code=made, names=listed)
        found.held = held
        answers = Answers(found, row_ids, title=source or "", row_html=row_html)
        server = Server(answers, secrets.token_urlsafe(), port)
        server.start()
        on_error.pop_all()
    if open_browser:
        _open(server.address, folder / "open.html")
    return Explorer(found, server, answers)


def _open(address: str, file: Path) -> None:
    """Open an address in a browser by a private file: others can see the command that starts a browser."""
    file.unlink(missing_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as page:
        page.write(f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">ravine</a>')
    webbrowser.open(file.resolve().as_uri())


def _code(model: Any) -> list[str]:
    """Return the Python that fits a model again, if there is one, where only its parameters are known."""
    lines = ["# X: the rows that were given to ravine.explore"]
    if model is not None:
        changed = [f"{name}={value}" for name, value in changed_parameters(model).items()]
        lines.append(f"model = {type(model).__name__}({', '.join(changed)}).fit(X)")
    return lines
