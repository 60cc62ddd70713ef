"""Open a file of rows that are read block by block, without loading it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from ravine.io.arrow_files import open_row_groups
from ravine.io.block_file import BlockFile
from ravine.io.files import open_source
from ravine.io.numpy_files import Matrix
from ravine.io.source import translate_read_errors
from ravine.io.table import Choice, check_known, read_table


def open(
    path: str | os.PathLike[str],
    columns: Sequence[str | int] | None = None,
    memory_limit: int | None = None,
) -> BlockFile:
    """Open a file of rows for `fit`, `predict`, `transform` and `score`, without loading it.

    Parameters
    ----------
    path : str or path
        An NPY file, a Parquet file, or a directory of Parquet files, which are read where they are, block by
        block; row groups are not divided. Other tables (CSV, TSV, Arrow) are converted once, to an unnamed
        temporary file if they are large.
    columns : list of str or int, optional
        The names of the columns to read, or their numbers in an NPY file; all columns of numbers by default.
    memory_limit : int, optional
        Bytes that a fit may use for blocks and what is computed from them, 1 GiB by default. A block takes at
        most an eighth of it, and has at most a sixteenth of all rows; with blocks of that many rows, the
        result is identical to the bit to that of the array in memory.

    Examples
    --------
    >>> import numpy as np, ravine, tempfile
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)) + 8 * rng.integers(2, size=(1000, 1))
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file.name, X)
    ...     model = ravine.MinimumDensity(2).fit(ravine.open(file.name))
    >>> bool((model.labels_ == ravine.MinimumDensity(2).fit(X).labels_).all())
    True
    """
    path = Path(path)
    names = None if columns is None else list(map(str, columns))
    if path.is_dir() or path.suffix.lower() == ".parquet":
        with translate_read_errors(path):
            return open_row_groups(path, names, memory_limit)
    source = open_source(path)
    if isinstance(source, Matrix):
        chosen = source.names if names is None else [f"x{name.removeprefix('x')}" for name in names]
        check_known(source, chosen)
        return source.select(chosen, memory_limit)
    table = read_table(source, Choice(columns=names, memory_limit=memory_limit, in_file=True))
    for note, _ in table.notes:
        warnings.warn(f"{path}: {note}", UserWarning, stacklevel=2)
    rows: BlockFile = table.values
    rows.names = table.names
    return rows
