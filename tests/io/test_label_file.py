"""Label files: every row gets its own label, whatever the number of blocks."""

import json

import numpy as np
import pandas as pd
import pytest

from ravine.io.label_file import write_labels
from ravine.io.table import Table

N = 9000  # rows: more than two blocks of 4096


def table(with_ids):
    """A table without values, with or without ids; the ids come in blocks of uneven size."""
    names = [f"row {i}" for i in range(N)]
    blocks = [names[:5000], names[5000:5001], names[5001:]] if with_ids else []
    return Table(
        names=("x",),
        values=np.zeros((N, 1)),
        id_name="name" if with_ids else None,
        id_blocks=[json.dumps(block).encode() for block in blocks],
    )


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_labels_are_read_back_unchanged(tmp_path, suffix, with_ids):
    labels = np.random.default_rng(0).integers(0, 50, N)
    path = tmp_path / f"labels{suffix}"
    write_labels(path, table(with_ids), labels)
    if suffix == ".parquet":
        found = pd.read_parquet(path)
    else:
        found = pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
    assert list(found.columns) == ["name" if with_ids else "row", "cluster"]
    assert found.iloc[:, 0].tolist() == [f"row {i}" if with_ids else i for i in range(N)]
    np.testing.assert_array_equal(found["cluster"], labels)
