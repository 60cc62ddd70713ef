"""The rules of the folders: imports point along the flow, without cycles, and importing costs nothing."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ravine

SOURCE = Path(ravine.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*") if path.suffix in (".py", ".pyx"))

# What each folder (or file at the top) may import, besides itself.
MAY_IMPORT = {
    "exceptions": set(),
    "_validate": {"exceptions"},
    "io": {"_validate", "exceptions"},
    "data": {"_validate", "exceptions", "io"},
    "features": {"data", "_validate", "exceptions", "io"},
    "index": {"_validate"},
    "optimize": {"data", "index", "_validate", "exceptions"},
    "split": {"optimize", "features", "data", "index", "_validate", "exceptions"},
    "evidence": {"split", "features", "data", "_validate"},
    "tree": {
        *("evidence", "store", "split", "optimize", "features", "data", "index"),
        *("_validate", "exceptions"),
    },
    "store": {"tree", "split", "features", "data", "io", "_validate", "exceptions"},
    "metrics": {"optimize", "features", "data", "index", "_validate", "exceptions"},
    "view": {
        "tree",
        "split",
        "optimize",
        "data",
        "index",
        "metrics",
        "io",
        "_validate",
        "exceptions",
    },
    "estimators": {
        *("store", "tree", "evidence", "split", "optimize", "features", "data", "index", "metrics", "io"),
        *("_validate", "exceptions"),
    },
    "papers": {
        *("estimators", "split", "optimize", "data", "index"),
        *("_validate",),
    },
    "explorer": {
        *("store", "estimators", "view", "tree", "split", "data", "io"),
        *("_validate", "exceptions"),
    },
    "cli": {
        *("explorer", "store", "estimators", "view", "tree", "data", "metrics", "io"),
        *("_validate", "exceptions"),
    },
}
# The files that import a package that not everybody has, or that is slow to load.
ONE_PLACE = {
    "dask": {"data/dask_engine.py"},
    "distributed": {"data/dask_engine.py"},
    "daqp": {"optimize/cutting_plane.py"},
    "jinja2": {"view/pages.py"},
    "matplotlib": {"view/plot.py"},
    "pyarrow": {"io/arrow_files.py"},
    "starlette": {"explorer/server.py"},
    "uvicorn": {"explorer/server.py"},
    "threadpoolctl": {"data/threads.py"},
}
# The view of an estimator in a notebook; a file small enough for memory;
# models, which name their classes; joining leaves again, which edits the tree.
EXCEPTIONS = {
    ("io/block_file.py", "ravine.data.memory"),
    ("store/model_file.py", "ravine.estimators.auto_cluster"),
    ("store/model_file.py", "ravine.estimators.methods"),
    ("store/model_file.py", "ravine.estimators.classifier"),
    ("store/model_file.py", "ravine.papers"),
    ("estimators/clusterer.py", "ravine.view.notebook"),
}


def imported(path):
    """Every module that a file imports, wherever in it; not what only types need."""
    if path.suffix == ".pyx":
        yield from re.findall(r"^from (\S+) c?import", path.read_text(), flags=re.MULTILINE)
        return
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def module_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_along_the_flow(path):
    where = path.relative_to(SOURCE)
    folder = where.parts[0].removesuffix(".py")
    for module in imported(path):
        parts = module.split(".")
        if parts[0] in ONE_PLACE:
            assert str(where) in ONE_PLACE[parts[0]], f"{where} imports {module}"
        if folder in ("__init__", "__main__") or parts[0] != "ravine" or module not in MODULES:
            continue
        if len(parts) == 1:
            continue  # the package itself, for its version and its public names
        allowed = MAY_IMPORT[folder] | {folder}
        assert parts[1] in allowed or (str(where), module) in EXCEPTIONS, f"{where} imports {module}"
        if folder == "index" and parts[1] == "index" and len(parts) > 2:
            assert parts[2] in SHARED_BY_INDICES or parts[2].startswith(path.stem.partition("_")[0]), (
                f"{where} imports {module}: an index knows no other index"
            )


SHARED_BY_INDICES = {"base", "interval", "line", "connectivity_loops"}  # on a line, and of all pairs


def test_there_are_no_cycles():
    graph = {
        name: {module for module in imported(path) if module in MODULES and module not in (name, "ravine")}
        for name, path in MODULES.items()
        if name != "ravine"
    }
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_rules_name_folders_and_files_that_exist():
    folders = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES}
    assert set(MAY_IMPORT) == folders - {"__init__", "__main__"}
    places = set().union(*ONE_PLACE.values())
    assert all((SOURCE / place).exists() for place in places)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_loads_no_scikit_learn():
    assert run("import sys, ravine; print('sklearn' in sys.modules)").strip() == "False"


# Importing a class also loads searches, growth and views: with the loops compiled when the package is built,
# this adds less than 0.1 s to the import of sklearn.cluster. Packages that not everybody has are loaded at
# their first use; scikit-learn itself loads pyarrow, by way of pandas, and threadpoolctl.
def test_importing_loads_no_optional_package():
    loaded = {
        module.split(".")[0]
        for module in run("import sys; from ravine import *; print(*sys.modules)").split()
    }
    assert not loaded & (set(ONE_PLACE) - {"jinja2", "pyarrow", "threadpoolctl"})


def test_importing_sets_no_global_state():
    code = (
        "import warnings, numpy as np, sklearn.cluster; np.random.seed(1); before = len(warnings.filters);"
        "state = np.random.get_state()[1].copy(); from ravine import *;"
        "print(before == len(warnings.filters), (state == np.random.get_state()[1]).all())"
    )
    assert run(code).split() == ["True", "True"]


def test_contributing_lists_the_files_of_one_fit():
    """The list has every Python file of which a function runs; compiled ones cannot be traced."""
    page = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text()
    part = page.partition("<!-- files of one fit -->")[2].partition("<!-- end -->")[0]
    listed = set(re.findall(r"`([\w/]+\.pyx?)`", part))
    compiled = {name for name in listed if name.endswith(".pyx")}
    assert [name for name in sorted(compiled) if not (SOURCE / name).exists()] == []
    # in a process of its own: what is remembered from earlier fits would hide functions
    code = "from benchmarks.compare import files_of_fit; print(*files_of_fit())"
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    traced = set(done.stdout.split())
    missing, extra = sorted(traced - listed), sorted(listed - compiled - traced)
    assert (missing, extra) == ([], []), "the list in CONTRIBUTING.md lacks the first, and has the second"
