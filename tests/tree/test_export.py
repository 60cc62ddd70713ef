"""Trees in other forms, checked with the programs that read them."""

import sqlite3
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import dendrogram, fcluster, is_valid_linkage
from sklearn.datasets import load_digits, load_wine

from ravine import InvalidInputError, MinimumDensity, PrincipalDirection
from ravine.tree.arrays import as_rows
from tests.tree.test_tree import partition

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
WINE = load_wine(as_frame=True).data
MODEL = MinimumDensity(4).fit(WINE)
DIGITS = load_digits().data


def test_text_names_sizes_depths_and_features():
    text = MODEL.tree_.export_text()
    assert text.splitlines()[0].startswith("178 rows (100%), split with quality ")
    assert "flavanoids" in text
    assert text.count("cluster ") == 4
    assert MODEL.tree_.export_text([f"f{j}" for j in range(13)]).count("+f") > 0


def test_print_shows_the_tree_as_text_and_repr_is_short():
    assert str(MODEL.tree_) == MODEL.tree_.export_text()
    assert repr(MODEL.tree_) == "<ClusterTree: 4 clusters of 178 rows>"


def test_a_frame_has_a_row_for_every_node():
    frame = MODEL.tree_.to_frame()
    assert len(frame) == MODEL.tree_.n_nodes
    assert frame.loc[frame.cluster >= 0, "weight"].sum() == 178
    assert frame.loc[0, "relative_depth"] == MODEL.tree_.splits[0].relative_depth
    assert frame.split.max() == 2


def test_further_facts_are_columns_of_the_frame():
    tree = MODEL.tree_
    first = replace(tree.splits[0], facts={"margin": 0.5})
    frame = replace(tree, splits=(first, *tree.splits[1:])).to_frame()
    assert frame.loc[0, "margin"] == 0.5
    assert frame.loc[1:, "margin"].isna().all()


def test_the_linkage_is_valid_and_cuts_like_the_tree():
    tree = PrincipalDirection(9).fit(DIGITS).tree_
    linkage = tree.to_linkage()
    assert is_valid_linkage(linkage, throw=True)
    assert dendrogram(linkage, no_plot=True)["ivl"]
    for k in range(1, 10):
        # by height: "maxclust" of SciPy 1.12 never returns as many clusters as leaves, or one less
        leaves = fcluster(linkage, 9 - k, criterion="distance")
        coarse = leaves[tree.predict(DIGITS)]
        assert partition(coarse) == partition(tree.cut(k).predict(DIGITS))
    with pytest.raises(InvalidInputError, match="two leaves"):
        tree.cut(1).to_linkage()


HOSTILE = [
    'a"; DROP TABLE t; --',
    "select",
    "with space",
    "semi;colon",
    "quote'",
    "new\nline",
    "percent%",
    "ünï",
    "back\\slash",
    "1",
    "-",
    "cluster two",
    "[x]",
]


def clear_rows(tree, X):
    """Rows that are farther than 1e-9 from every split."""
    return np.abs(tree.distances(as_rows(X))).min(axis=1) > 1e-9


@pytest.mark.parametrize("names", [list(WINE.columns), HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("table", ["wine", 'odd "table" name'])
def test_the_database_gives_the_same_clusters(engine, names, table):
    frame = pd.DataFrame(WINE.to_numpy(), columns=names)
    model = MinimumDensity(4).fit(frame)
    query = model.tree_.export_sql(table, engine)
    if engine == "duckdb":
        connection = duckdb.connect()
        connection.register("source", frame)
        quoted = '"' + table.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {quoted} AS SELECT * FROM source")
        answer = connection.execute(query).df()
    else:
        connection = sqlite3.connect(":memory:")
        frame.to_sql(table, connection, index=False)
        answer = pd.read_sql_query(query, connection)
    assert list(answer.columns) == [*names, "cluster"]
    np.testing.assert_array_equal(answer["cluster"].to_numpy(), model.labels_)


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_digits_row_by_row_and_null_for_null(engine):
    names = [f"pixel {j}" for j in range(64)]
    frame = pd.DataFrame(DIGITS.astype(int), columns=names)
    model = MinimumDensity(10).fit(frame)
    query = model.tree_.export_sql("digits", engine)
    sure = clear_rows(model.tree_, DIGITS)
    spoilt = frame.astype(object)
    spoilt.iloc[7, 30] = None
    if engine == "duckdb":
        connection = duckdb.connect()
        digits = spoilt.astype("Int64")
        connection.register("digits", digits)
        cluster = connection.execute(query).df()["cluster"]
    else:
        connection = sqlite3.connect(":memory:")
        spoilt.to_sql("digits", connection, index=False)
        cluster = pd.read_sql_query(query, connection)["cluster"]
    assert pd.isna(cluster.iloc[7])
    sure[7] = False
    np.testing.assert_array_equal(cluster.to_numpy()[sure].astype(int), model.labels_[sure])


def test_sql_of_other_dialects_and_of_one_cluster():
    assert "`a``b`" in MODEL.tree_.export_sql("t", "mysql", columns=["a`b", *HOSTILE[1:]])
    assert "[x]]y]" in MODEL.tree_.export_sql("t", "mssql", columns=["x]y", *HOSTILE[1:]])
    assert MODEL.tree_.cut(1).export_sql("t") == 'SELECT "t".*, 0 AS cluster FROM "t"'
    with pytest.raises(InvalidInputError, match="13 feature names are needed, got 2"):
        MODEL.tree_.export_sql("t", columns=["a", "b"])
    with pytest.raises(InvalidInputError, match="'duckdb', 'sqlite'"):
        MODEL.tree_.export_sql("t", "oracle")
    with pytest.raises(InvalidInputError, match="zero byte"):
        MODEL.tree_.export_sql("t\0")
