"""Labels in files: every row has its own, however many blocks there are."""

import json

import numpy as np
import pandas as pd
import pytest

from ravine.cli.label_file import write_labels
from ravine.io.table import Table

N = 9000  # rows: more than two blocks of 4096


def table(with_ids):
    """A table of rows that says only how they are called; ids come in blocks of uneven size."""
    names = [f"row {i}" for i in range(N)]
    blocks = [names[:5000], names[5000:5001], names[5001:]] if with_ids else []
    return Table(
        names=("x",),
        values=np.zeros((N, 1)),
        fill=None,
        id_name="name" if with_ids else None,
        id_blocks=[json.dumps(block).encode() for block in blocks],
        classes=(),
        class_of=None,
        notes=(),
    )


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_labels_come_back_as_they_were(tmp_path, suffix, with_ids):
    labels = np.random.default_rng(0).integers(0, 50, N)
    path = tmp_path / f"labels{suffix}"
    write_labels(str(path), table(with_ids), labels)
    if suffix == ".parquet":
        found = pd.read_parquet(path)
    else:
        found = pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
    assert list(found.columns) == ["name" if with_ids else "row", "cluster"]
    assert found.iloc[:, 0].tolist() == [f"row {i}" if with_ids else i for i in range(N)]
    np.testing.assert_array_equal(found["cluster"], labels)
